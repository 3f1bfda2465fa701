"""Where a NaN or an infinity came from, and who wrote to a saved tensor."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from typing import Any

from torchlab._core.memory.storage import Storage
from torchlab.viz.recorders.calls import Call, CallLog
from torchlab.viz.recorders.values import backward_reason, bad, forward_reason
from torchlab.viz.snapshots.backward import BackwardNode, Origin, Place, Stats, Step
from torchlab.viz.snapshots.common import Source


def file_name(file: str) -> str:
    """A file as snapshots call it: a notebook's cell has a random name."""
    return "cell" if "ipykernel_" in file or file.startswith("<ipython-input") else file


def writer_of(storage: Storage) -> Source | None:
    """The line that last wrote to a version that the tape had saved."""
    if storage.writer is None:
        return None
    code, instruction = storage.writer
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= instruction < end and number is not None:
            line = number
    text = linecache.getline(code.co_filename, line).strip()
    return {"file": file_name(code.co_filename), "line": line, "code": text}


def _what(found: Stats) -> str:
    return "nan" if found["nan"] else "inf"


def _place(call: Call) -> Place:
    return {
        "op": call.op,
        "node": call.identity,
        "module": call.module,
        "source": call.source,
    }


def forward_origin(log: CallLog, end: str) -> Origin | None:
    """The first operation of the forward with a result that is not finite, and the way of that to
    the node `end`; None if all was finite."""
    found = log.first_bad()
    if found is None:
        return None
    index, made = found
    call = log.calls[index]
    gave = next((s for s in call.gave if bad(s)), None)
    came = next((s for s in call.fed if bad(s)), None)
    shown = gave if made else came
    assert shown is not None
    way = log.onward(index, end)
    last = log.calls[way[-1]]
    place = _place(call)
    return Origin(
        what=_what(shown),
        where="forward" if made else "data",
        op=call.op,
        node=place["node"],
        module=call.module,
        source=call.source,
        fed=call.fed,
        gave=shown,
        why=forward_reason(call.op, call.fed) if made else f"{shown['name']} came with it",
        path=[_place(log.calls[i]) for i in way],
        reaches=bool(end) and last.identity == end,
    )


def backward_origin(node: Mapping[str, Any], call: Call | None, gave: Stats) -> Origin:
    """A gradient rule that made a NaN or an infinity from finite gradients."""
    fed = [] if call is None else call.fed
    return Origin(
        what=_what(gave),
        where="backward",
        op=node["name"],
        node=node["id"],
        module="" if call is None else call.module,
        source=node["source"],
        fed=fed,
        gave=gave,
        why="" if call is None else backward_reason(call.op, fed),
        path=[],
        reaches=False,
    )


def onwards(origin: Origin, steps: list[Step], nodes: list[BackwardNode]) -> Origin:
    """A backward origin with the way of the bad gradient to the leaf that it reached first."""
    if origin["where"] not in ("backward", "hook"):
        return origin
    known = {n["id"]: n for n in nodes}
    before: dict[str, str] = {}
    carrying, end = {origin["node"]}, ""
    for step in steps:
        if step["node"] not in carrying:
            continue
        if step["leaf"] is not None:
            end = step["node"]
            break
        for g in step["sent"]:
            if g is not None and isinstance(g["norm"], str) and g["to"] not in carrying:
                carrying.add(g["to"])
                before[g["to"]] = step["node"]
    if not end:
        end = next(reversed(before), origin["node"])
    path = [end]
    while path[-1] != origin["node"] and path[-1] in before:
        path.append(before[path[-1]])
    places = [
        {
            "op": known[i]["label"] or known[i]["name"],
            "node": i,
            "module": known[i]["module"],
            "source": known[i]["source"],
        }
        for i in reversed(path)
        if i in known
    ]
    reaches = any(known[i]["kind"] == "leaf" for i in path if i in known)
    return {**origin, "path": places, "reaches": reaches}  # type: ignore[typeddict-item]
