"""Why a tensor has no gradient, and which saved tensors were written to: answers as data.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchlab._core.hooks import hooks_of
from torchlab._core.tape import RELEASED, AccumulateGrad, Out, edge_of
from torchlab._core.tape import Node as TapeNode
from torchlab._core.tensor import Tensor
from torchlab.viz.recorders.autograd import Tape
from torchlab.viz.recorders.backward import BackwardRecorder, latest
from torchlab.viz.recorders.calls import Call, CallLog
from torchlab.viz.recorders.common import dtype_name
from torchlab.viz.recorders.origins import writer_of
from torchlab.viz.snapshots.backward import Place, Write
from torchlab.viz.snapshots.common import Source, source_text


@dataclass(frozen=True, slots=True)
class NoneReason:
    """Why `tensor.grad` is None.

    kind: 'has_grad' (it is not None), 'integer', 'not_required', 'detached', 'no_grad',
        'not_differentiable', 'not_leaf', 'not_on_path', 'no_gradient', 'no_backward',
        'cleared', 'no_history' (the loss itself has none).
    text: the answer in words, with what to do. source: the line that cut the path, where it is
    known. path: the operations between the tensor and the loss, or up to the cut.
    """

    kind: str
    text: str
    source: Source | None = None
    path: tuple[Place, ...] = ()

    def __str__(self) -> str:
        return self.text


def _line(source: Source | None) -> str:
    if source is None:
        return ""
    return f" at {source_text(source)}" + (f" (`{source['code']}`)" if source["code"] else "")


def _target(edge: Any) -> TapeNode:
    found: TapeNode = edge.node if type(edge) is Out else edge
    return found


def _reachable(start: TapeNode, goal: TapeNode) -> list[TapeNode] | None:
    """The nodes on the shortest way from `start` to `goal` over the tape, None if there is none."""
    before: dict[TapeNode, TapeNode | None] = {start: None}
    queue = [start]
    for node in queue:  # grows while it is walked
        if node is goal:
            way: list[TapeNode] = []
            here: TapeNode | None = node
            while here is not None:
                way.append(here)
                here = before[here]
            return way
        for edge in node.next:
            if edge is not None and _target(edge) not in before:
                before[_target(edge)] = node
                queue.append(_target(edge))
    return None


def _places(calls: list[Call]) -> tuple[Place, ...]:
    return tuple(
        {"op": c.op, "node": "", "module": c.module, "source": c.source} for c in calls
    )  # fmt: skip


def _cut(call: Call, path: tuple[Place, ...], subject: str) -> NoneReason | None:
    """The reason that lies in one call: it had an operand with a history and gives none on."""
    line = _line(call.source)
    if call.kept or not call.tracked:
        return None
    if call.op in ("detach", "detach_"):
        text = (
            f"{subject} was detached{line}: detach() returns a tensor without history. Use the"
            " tensor itself where its gradient is wanted."
        )
        return NoneReason("detached", text, call.source, path)
    if not call.grad:
        text = (
            f"{subject} went through `{call.op}` under no_grad() or inference_mode(){line}: no"
            " history is recorded there. Move that line out of the block."
        )
        return NoneReason("no_grad", text, call.source, path)
    kinds = {s["dtype"] for s in call.gave}
    if not any(k.startswith(("float", "bfloat", "complex")) for k in kinds):
        text = (
            f"{subject} went through `{call.op}`{line}, whose result is {', '.join(sorted(kinds))}:"
            " only floating-point and complex tensors have gradients."
        )
        return NoneReason("integer", text, call.source, path)
    text = f"{subject} went through `{call.op}`{line}, which has no gradient."
    return NoneReason("not_differentiable", text, call.source, path)


def _cut_on(calls: list[Call], subject: str) -> NoneReason | None:
    for i, call in enumerate(calls):
        found = _cut(call, _places(calls[: i + 1]), subject)
        if found is not None:
            return found
    return None


def _history(tensor: Tensor, log: CallLog, subject: str) -> NoneReason | None:
    """Where a tensor without a history lost it: the nearest cut among what it was computed from."""
    call = log.maker(tensor)
    seen: set[int] = set()
    queue = [] if call is None else [call]
    for here in queue:  # grows while it is walked
        found = _cut(here, (), subject if here is call else f"What {subject} was computed from")
        if found is not None:
            return found
        for value in here.reads:
            index = log.made_by[value]
            if index >= 0 and index not in seen:
                seen.add(index)
                queue.append(log.calls[index])
    return None


NOT_SEEN = " (Compute it inside viz.record_backward() to be told the line.)"


def why_none(
    tensor: Tensor,
    loss: Tensor | None = None,
    recording: BackwardRecorder | None = None,
) -> NoneReason:
    """Why `tensor.grad` is None after `loss.backward()`.

        with viz.record_backward() as recording:
            loss = (model(x.detach()) ** 2).mean()
            loss.backward()
        print(viz.why_none(x, loss))
        # x was detached at train.py:2 (`loss = (model(x.detach()) ** 2).mean()`): …

    Args:
        tensor: the one whose gradient is missing.
        loss: what `backward()` was called on.
        recording: the recording of the forward, which knows the lines; default: the one that was
            started last. Without any, the reason is told from the tape alone.

    Returns:
        The reason: its kind, the answer in words, the line where the path was cut.
    """
    found = recording if recording is not None else latest()
    log = found.log if found is not None else CallLog(0)
    known = bool(log.values_of(tensor))
    if tensor._g is not None:
        return NoneReason("has_grad", "Its .grad is not None.")
    kind = tensor._k.dtype
    if not (kind.is_floating_point or kind.is_complex):
        text = (
            f"Its dtype is {dtype_name(kind)}: only floating-point and complex tensors have"
            " gradients. Convert it (x.float()) before requires_grad_()."
        )
        return NoneReason("integer", text)
    edge = edge_of(tensor)
    if edge is None:
        reason = _history(tensor, log, "It")
        if reason is not None:
            return reason
        made = log.maker(tensor)
        if made is not None:
            text = (
                f"It was computed by `{made.op}`{_line(made.source)} from tensors of which none"
                " requires a gradient."
            )
            return NoneReason("not_required", text, made.source)
        hint = "" if known or found is not None else NOT_SEEN
        text = (
            "It does not require a gradient: requires_grad is False, and it has no history. Call"
            f" requires_grad_() before the forward.{hint}"
        )
        return NoneReason("not_required", text)
    if loss is not None:
        reason = _off_path(tensor, loss, _target(edge), log, found)
        if reason is not None:
            return reason
    leaf = type(edge) is AccumulateGrad
    if not leaf and not _retained(edge):
        text = (
            f"It is not a leaf: it was computed (grad_fn={_target(edge).name()}), and backward"
            " keeps gradients of leaves only. Call retain_grad() on it before backward()."
        )
        made = log.maker(tensor)
        return NoneReason("not_leaf", text, None if made is None else made.source)
    return _after_backward(_target(edge), found)


def _retained(edge: Any) -> bool:
    node = _target(edge)
    return (
        node._hooks is not None and (edge.nr if type(edge) is Out else 0) in hooks_of(node).retain
    )


def _off_path(
    tensor: Tensor, loss: Tensor, node: TapeNode, log: CallLog, found: BackwardRecorder | None
) -> NoneReason | None:
    """The reason if backward from the loss does not come to the tensor."""
    start = edge_of(loss)
    calls = log.way(log.values_of(tensor), loss)
    if start is None:
        reason = _cut_on(calls, "It") if calls else _history(loss, log, "The loss")
        if reason is not None:
            return reason
        return NoneReason("no_history", "The loss has no history: backward() has nothing to walk.")
    if _reachable(_target(start), node) is not None:
        return None
    if calls:
        reason = _cut_on(calls, "It")
        if reason is not None:
            return reason
    text = "It is not on the path: the loss was not computed from it" + (
        " by any recorded operation (values taken out with .item(), .tolist(), .numpy() or .data"
        " cannot be followed)."
        if log.values_of(tensor)
        else ", as far as the tape tells."
        + (NOT_SEEN if found is None else " No recorded operation has used it.")
    )
    return NoneReason("not_on_path", text)


def _after_backward(node: TapeNode, found: BackwardRecorder | None) -> NoneReason:
    """The tensor is on the path, and yet there is nothing: what backward did."""
    identity = found._tape.ids.get(node) if found is not None else None
    steps = found.steps if found is not None else []
    if identity is None or not steps:
        text = (
            "It is on the path, but nothing has been accumulated: backward() has not run (or not"
            " while a recording listened), or the gradient was cleared since (zero_grad())."
        )
        return NoneReason("no_backward", text)
    if any(s["node"] == identity and s["kind"] == "captured" for s in steps):
        text = "autograd.grad() returned its gradient; only backward() fills .grad."
        return NoneReason("no_backward", text)
    if any(s["node"] == identity for s in steps):
        text = "It had a gradient, which was cleared since (zero_grad() sets .grad to None)."
        return NoneReason("cleared", text)
    givers = {
        e["src"] for e in found.snapshot()["edges"] if e["dst"] == identity
    } if found is not None else set()  # fmt: skip
    ran = [s for s in steps if s["node"] in givers]
    if ran and found is not None:
        names = ", ".join(dict.fromkeys(found.playback.name(s["node"]) for s in ran))
        text = f"Backward came by, but {names} gave no gradient for it (None)."
        return NoneReason("no_gradient", text)
    text = (
        "It is on the path, but backward did not go there: it ran from another tensor or with"
        " inputs=…."
    )
    return NoneReason("no_backward", text)


def changed_in_place(loss: Tensor) -> list[Write]:
    """The tensors that backward from `loss` needs and that were written to since they were saved:
    which node saved them, the versions, and the line that wrote.

    These are what makes `backward()` raise "modified by an inplace operation"; an empty list means
    that it will not.
    """
    edge = edge_of(loss)
    if edge is None:
        return []
    tape = Tape()
    tape.walk([_target(edge)])
    found = []
    for identity, entry in tape.seen.items():
        node = entry.ref()
        for item, (slot, reference) in zip(entry.plain["saved"], entry.storages, strict=True):
            storage = reference()
            if storage is None or node is None or getattr(node, slot, None) is RELEASED:
                continue
            if storage.version != item["version"]:
                found.append(
                    Write(
                        node=f"{identity}: {entry.plain['name']}",
                        name=item["name"],
                        version=item["version"],
                        current_version=storage.version,
                        source=entry.plain["source"],
                        written=writer_of(storage),
                    )
                )
    return found
