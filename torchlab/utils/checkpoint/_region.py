"""Checkpointing by saved-tensor hooks: the tape keeps empty slots, and the first one that backward
opens runs the function again and fills them.

Note [Slots]
~~~~~~~~~~~~
While the function runs first, everything that the tape would save goes through `_First.pack`, which
keeps nothing but a `_Slot` in its place, numbered in order. When backward opens a slot, the region
runs its function again under `_Again`: what the tape would save now belongs, in the same order,
into the slots. Once the last is filled, the rest of the function is not needed (early stop). A slot
gives its value away when it is opened, so memory is freed as backward goes through the region.

Values are kept by backward pass (`TLS.graph_task`), so that a second backward, or one inside the
other, runs the function for itself; within a `GraphExecGroup` they are kept by group. Outside of
any backward (`grad_fn._saved_self`) every opening runs the function.

Regions nest without more ado. The inner region starts anew each time that the outer one runs; its
inputs are saved by `tape.save` and so go through the outer region's hooks, become slots of the
outer region, and keep nothing alive.

Source: https://docs.pytorch.org/docs/2.13/checkpoint.html
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import python_key
from torchlab._core.tape import TLS, Node, unpack
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import enable_grad, no_grad
from torchlab.autograd.graph import saved_tensors_hooks

_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint-debug mode globally.
"""


class CheckpointError(RuntimeError):
    """The function did something else when it ran again."""


class StopRecomputation(Exception):
    """All slots are filled; thrown through the function, caught by the region."""


class GraphExecGroup:
    """Several backward passes inside run each checkpointed region at most once.

    The passes must go through parts of the graph that do not overlap, even with retain_graph=True:
    none may need a saved value that another has used. Regions with use_reentrant=True take no
    notice.
    """

    def __enter__(self) -> GraphExecGroup:
        current = _group.current
        if current is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {current}"
            )
        _group.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        _group.current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _group.current


class _Group(threading.local):
    current: GraphExecGroup | None = None


_group = _Group()


class _Slot:
    """The place of one saved tensor; `values` by backward pass, for as long as they are needed."""

    __slots__ = ("number", "values", "__weakref__")

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: dict[Any, Tensor] = {}


class _Inputs(Node):
    """What the error names that an input was saved by when it has been written to."""

    def name(self) -> str:
        return "checkpoint"


def metadata(x: Tensor) -> dict[str, Any]:
    """What must be the same in both runs."""
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


class Region:
    """One call of a function whose saved tensors are computed again.

    run_again(args): the function with the surroundings of its first run. on_error: gets a
    CheckpointError to make more of it (debug mode), or None. compare: what is compared of a saved
    tensor, or None.
    """

    def __init__(
        self,
        run_again: Callable[[tuple[Any, ...]], Any],
        args: tuple[Any, ...],
        early_stop: bool,
        compare: Callable[[Tensor], Any] | None,
        on_error: Callable[[CheckpointError], None] | None,
    ) -> None:
        self.run_again = run_again
        self.early_stop = early_stop
        self.compare = compare
        self.on_error = on_error
        self.slots: list[weakref.ref[_Slot]] = []
        self.facts: list[Any] = []
        self.filled: dict[Any, int] = {}  # by backward pass: how many tensors its run has saved
        self.completed = False  # whether the first run has come to its end
        self.node = _Inputs()
        self.args = [
            (True, python_key.keep(x)) if isinstance(x, Tensor) else (False, x) for x in args
        ]

    def first(self) -> saved_tensors_hooks:
        """The hooks for the first run."""
        return saved_tensors_hooks(self._make_slot, self._open)

    def _make_slot(self, x: Tensor) -> _Slot:
        slot = _Slot(len(self.slots))
        self.slots.append(weakref.ref(slot))
        if self.compare is not None:
            with no_grad():
                self.facts.append(self.compare(x))
        return slot

    def _open(self, slot: _Slot) -> Tensor:
        if self.on_error is None:
            return self._value(slot)
        try:
            return self._value(slot)
        except CheckpointError as error:
            self.on_error(error)
            raise

    def _value(self, slot: _Slot) -> Tensor:
        group = _group.current
        task: Any = group if group is not None else TLS.graph_task
        if task == -1:  # nobody can ask for the other values: they would stay for ever
            return self._alone(slot)
        if task not in self.filled:
            self._run(task)
            self._check(task)
        value = slot.values.pop(task, None)
        if value is None:
            raise CheckpointError(_opened_twice(group is not None))
        return value

    def _alone(self, slot: _Slot) -> Tensor:
        task = object()
        try:
            self._run(task)
            self._check(task)
            return slot.values[task]
        finally:
            self.filled.pop(task, None)
            for ref in self.slots:
                other = ref()
                if other is not None:
                    other.values.pop(task, None)

    def _run(self, task: Any) -> None:
        self.filled[task] = 0
        args = tuple(unpack(x, self.node) if saved else x for saved, x in self.args)

        def pack(x: Tensor) -> Tensor:
            return self._fill(task, x)

        try:
            with saved_tensors_hooks(pack, _same), enable_grad():
                self.run_again(args)
        except StopRecomputation:
            pass
        except BaseException:
            del self.filled[task]
            raise

    def _fill(self, task: Any, x: Tensor) -> Tensor:
        n = self.filled[task]
        self.filled[task] = n + 1
        value = x.detach()  # type: ignore[attr-defined]
        if n >= len(self.slots):
            if not self.completed:
                return value  # backward within the first run: there is more to come
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than"
                f" during the original forward pass.\n{_TIP}"
            )
        slot = self.slots[n]()
        if slot is not None:
            slot.values[task] = value
        if self.early_stop and n + 1 == len(self.slots):
            raise StopRecomputation
        return value

    def _check(self, task: Any) -> None:
        n = self.filled[task]
        if n < len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the"
                " original forward and recomputation.\nNumber of tensors saved during forward:"
                f" {len(self.slots)}\nNumber of tensors saved during recomputation: {n}.\n{_TIP}"
            )
        if self.compare is None:
            return
        lines = ""
        for i, ref in enumerate(self.slots):
            slot = ref()
            if slot is None or task not in slot.values:
                continue
            now = self.compare(slot.values[task])
            if now != self.facts[i]:
                lines += (
                    f"tensor at position {i}:\nsaved metadata: {self.facts[i]}\nrecomputed"
                    f" metadata: {now}\n"
                )
        if lines:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different"
                f" metadata than during the forward pass.\n{lines}.\n{_TIP}"
            )


def _same(x: Tensor) -> Tensor:
    return x


def _opened_twice(in_group: bool) -> str:
    start = (
        "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked"
        " once. "
    )
    end = (
        "If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise"
        " please open an issue with details on your use case."
    )
    if in_group:
        start += (
            "Performing two backward calls that overlap (i.e. require the same saved activation in"
            " order to compute gradients) is not allowed while under the"
            " torch.utils.checkpoint.GraphExecGroup context. "
        )
    return start + end


__all__ = [
    "CheckpointError", "GraphExecGroup", "Region", "StopRecomputation", "metadata",
]  # fmt: skip
