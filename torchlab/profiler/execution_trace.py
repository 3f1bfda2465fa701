"""`ExecutionTraceObserver`: every operator with its arguments and results, as a graph in a file.

The file is JSON in the schema of the Chakra execution traces. Its nodes are operators that reach a
kernel, composites around them, nodes of backward and `record_function` blocks; `ctrl_deps` names
the node within which one ran. A tensor is [tensor id, storage id, offset, elements, bytes of one,
device].

Source: https://docs.pytorch.org/docs/2.13/profiler.html, https://github.com/mlcommons/chakra
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from itertools import count
from typing import Any

from torchlab._core import events
from torchlab._core.blocks import LISTENERS
from torchlab._core.dispatch import python_key
from torchlab._core.tape import AccumulateGrad, next_seq
from torchlab._core.tensor import Tensor
from torchlab.autograd.profiler_watch import (
    BACKWARD,
    FUNCTION,
    USER,
    c_name,
    tensors_in,
)

_SCHEMA = "1.1.1-chakra.0.0.4"
_PROCESS, _THREAD = 1, 2


class _Ids:
    """Numbers of tensors and memory. The same view of the same memory is one tensor."""

    def __init__(self) -> None:
        self.next = count(_THREAD + 1).__next__
        self._storages: dict[int, int] = {}
        self._tensors: dict[Any, int] = {}

    def of(self, t: Tensor) -> list[Any]:
        address = t.untyped_storage().data_ptr() if t.numel() else 0
        view = (address, t.storage_offset(), tuple(t.shape), tuple(t.stride()), str(t.dtype))
        number = self._tensors.get(view)
        if number is None:
            number = self._tensors[view] = self.next()
        storage = self._storages.get(address)
        if storage is None:
            storage = self._storages[address] = self.next()
        return [
            number, storage, t.storage_offset(), t.numel(), t.element_size(), str(t.device),
        ]  # fmt: skip


def _kind(x: Any) -> str:
    if x is None:
        return "None"
    if isinstance(x, Tensor):
        return f"Tensor({c_name(x.dtype)})"
    if isinstance(x, (list, tuple)):
        inner = [_kind(y) for y in x]
        if inner and not inner[0].startswith("Tensor"):
            inner = inner[:1]
        return f"GenericList[{','.join(inner)}]"
    names = {bool: "Bool", int: "Int", float: "Double", complex: "ComplexDouble", str: "String"}
    return names.get(type(x), type(x).__name__.capitalize())


class ExecutionTraceObserver:
    """Writes what runs between `start` and `stop` to a file.

        et = ExecutionTraceObserver().register_callback("trace.json")
        et.start(); step(); et.stop(); et.unregister_callback()

    Also as the `execution_trace_observer` of `torchlab.profiler.profile`.
    """

    below_autograd = True
    looks_on = True

    def __init__(self) -> None:
        self._path: str | None = None
        self._registered = False
        self._running = False
        self._nodes: list[dict[str, Any]] = []
        self._around = [_THREAD]
        self._pending: int | None = None  # the number of the node of backward that is running
        self._started = 0
        self._rf = count(1).__next__

    def __del__(self) -> None:
        if self._registered:
            self.unregister_callback()

    # ---- on and off -----------------------------------------------------------------------------

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Choose the file. RuntimeError if it cannot be written."""
        if not self._registered:
            folder = os.path.dirname(os.path.abspath(output_file_path))
            if not os.access(folder, os.W_OK):
                raise RuntimeError(f"ExecutionTraceObserver: {folder} cannot be written to")
            self._path, self._registered = output_file_path, True
            self._ids, self._nodes = _Ids(), []
            self._started = time.monotonic_ns()
            self._note(_THREAD, "[pytorch|profiler|execution_trace|thread]", _PROCESS, USER)
        return self

    def unregister_callback(self) -> None:
        """Stop, and finish the file."""
        if not self._registered:
            return
        self.stop()
        self._registered = False
        self._note(_PROCESS, "[pytorch|profiler|execution_trace|process]", _PROCESS, USER)
        whole = {
            "schema": _SCHEMA, "pid": os.getpid(), "time": time.strftime("%Y-%m-%d %H:%M:%S"),
            "start_ts": self._started // 1_000_000, "nodes": self._nodes,
            "finish_ts": time.monotonic_ns() // 1_000_000,
        }  # fmt: skip
        assert self._path is not None
        with open(self._path, "w", encoding="utf-8") as f:
            json.dump(whole, f, indent=1, default=str)

    def start(self) -> None:
        """Begin to look."""
        if self._registered and not self._running:
            self._running = True
            LISTENERS.append(self)
            self._listening = [
                events.backward_begin.subscribe(self._backward_begins),
                events.backward_step.subscribe(self._backward_stepped),
                events.backward_end.subscribe(self._backward_ends),
            ]
            python_key.on(self)

    def stop(self) -> None:
        """Stop looking; `start` goes on in the same file."""
        if self._running:
            python_key.off(self)
            LISTENERS.remove(self)
            for opened in self._listening:
                opened.close()
            self._running = False

    def cleanup(self) -> None:
        """Finish the file."""
        self.unregister_callback()

    @property
    def is_registered(self) -> bool:
        """Whether a file is open."""
        return self._registered

    def is_running(self) -> bool:
        """Whether it looks."""
        return self._running

    def get_output_file_path(self) -> str | None:
        """The file; None before there is one."""
        return self._path

    def set_extra_resource_collection(self, val: bool) -> None:
        """Whether to keep generated kernels and tables of indices, too. They are not collected."""
        if val:
            raise NotImplementedError(
                "ExecutionTraceObserver: generated kernels and tables of indices are not collected"
            )

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder beside a trace for what belongs to it: `trace_resources`."""
        folder = f"{os.path.splitext(trace_path)[0]}_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """That folder for this trace; None if there is none."""
        if not self._registered or self._path is None:
            return None
        return self.get_resources_dir_for_et_path(self._path, can_create)

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer that writes to a temporary file if ENABLE_PYTORCH_EXECUTION_TRACE is 1 in
        the environment, else None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        with tempfile.NamedTemporaryFile("w", suffix=".et.json", delete=False) as f:
            path = f.name
        return ExecutionTraceObserver().register_callback(path)

    # ---- what is told ---------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = func._schema
        named = kwargs or {}
        given = [
            *args,
            *(named.get(a.name, a.default_value) for a in schema.arguments[len(args) :]),
        ]
        seq = next_seq() + 1 if any(t.requires_grad for t in tensors_in(args)) else -1
        number, parent = self._open()
        try:
            result = func(*args, **named)
        finally:
            self._around.pop()
        self._note(number, schema.name, parent, FUNCTION, given, result, str(schema), seq)
        return result

    def around(self, op: Any, args: Any) -> Any:
        """A composite: PyTorch's operator that is made of others."""
        if not op.public or op.name.startswith("_"):
            return op.core(*args)
        number, parent = self._open()
        try:
            result = op.core(*args)
        finally:
            self._around.pop()
        self._note(number, f"aten::{op.name}", parent, FUNCTION, args, result, str(op.schema))
        return result

    def block_begins(self, name: str) -> tuple[int, int, str]:
        """A block (torchlab._core.blocks) begins."""
        return (*self._open(), name)

    def block_ends(self, token: tuple[int, int, str]) -> None:
        """It ends."""
        number, parent, name = token
        if number in self._around:
            self._around.remove(number)
        self._note(number, name, parent, USER)

    def _open(self) -> tuple[int, int]:
        number, parent = self._ids.next(), self._around[-1]
        if self._pending is not None and parent == self._enclosing:
            parent = self._pending
        self._around.append(number)
        return number, parent

    def _backward_begins(self, roots: Any) -> None:
        self._enclosing = self._around[-1]
        self._pending = self._ids.next()

    def _backward_stepped(self, node: Any, grad_outputs: Any, grad_inputs: Any) -> None:
        if self._pending is None:
            return
        seq = -1 if type(node) is AccumulateGrad else node._sequence_nr()
        given = [g for g in grad_outputs or () if g is not None]
        self._note(self._pending, node.name(), self._enclosing, BACKWARD, given, (), "", seq)
        self._pending = self._ids.next()

    def _backward_ends(self, roots: Any, last: Any) -> None:
        for made in self._nodes:  # what ran after the last node belongs to none
            if made["ctrl_deps"] == self._pending:
                made["ctrl_deps"] = self._enclosing
        self._pending = None

    def _note(
        self, number: int, name: str, parent: int, scope: int, given: Any = (), result: Any = (),
        schema: str = "", seq: int = -1,
    ) -> None:  # fmt: skip
        results = result if isinstance(result, (list, tuple)) else (result,)
        structural = number in (_PROCESS, _THREAD)
        back = scope == BACKWARD
        attrs: list[tuple[str, str, Any]] = [
            ("rf_id", "uint64", 0 if structural else self._rf()),
            ("fw_parent", "uint64", 0),
            ("seq_id", "int64", seq),
            ("scope", "uint64", scope),
            ("tid", "uint64", 0 if number == _PROCESS else threading.get_native_id()),
            ("fw_tid", "uint64", threading.get_native_id() if back else 0),
            ("op_schema", "string", schema),
            ("kernel_backend", "string", ""),
            ("kernel_file", "string", ""),
            ("tensor_range", "string", ""),
        ]
        self._nodes.append(
            {"id": number, "name": name, "ctrl_deps": parent, "inputs": self._values(given),
             "outputs": self._values(results),
             "attrs": [{"name": n, "type": t, "value": v} for n, t, v in attrs]}
        )  # fmt: skip

    def _values(self, values: Any) -> dict[str, Any]:
        return {
            "values": [self._value(x) for x in values],
            "shapes": [_facts(x, lambda t: list(t.shape)) for x in values],
            "types": [_kind(x) for x in values],
            "strides": [_facts(x, lambda t: list(t.stride())) for x in values],
        }

    def _value(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return self._ids.of(x)
        if isinstance(x, (list, tuple)):
            return [self._value(y) for y in x]
        return "<None>" if x is None else x if isinstance(x, (int, float, str)) else str(x)


def _facts(x: Any, fact: Any) -> Any:
    if isinstance(x, Tensor):
        return fact(x)
    if isinstance(x, (list, tuple)) and x:
        return [_facts(y, fact) for y in x[:1]] if not isinstance(x[0], Tensor) else [
            _facts(y, fact) for y in x
        ]  # fmt: skip
    return []


__all__ = ["ExecutionTraceObserver"]
