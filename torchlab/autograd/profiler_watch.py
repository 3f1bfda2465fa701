"""What a profiler sees while it is on: operators, nodes of backward, blocks, memory.

Operators are those that reach a kernel, and the composites around them, of the thread that
switched the profiler on; a node of backward lasts from the end of the one before it. Times are the
wall clock's. Of memory it sees what tensors hold on to: the arrays that operators return, until
they are freed, and on other devices the allocator's blocks; not what a kernel needs in between.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchlab._core import events
from torchlab._core.backends import cuda as _gpus
from torchlab._core.blocks import LISTENERS
from torchlab._core.dispatch import python_key
from torchlab._core.tape import AccumulateGrad, next_seq
from torchlab._core.tensor import Tensor
from torchlab.autograd.profiler_flops import flops_of

MODULE_SPANS: list[Any] = []  # torchlab.profiler.modules: switches spans around nn.Module calls on
FUNCTION, BACKWARD, USER = 0, 1, 7  # PyTorch's numbers of scopes

_PACKAGE = str(Path(__file__).resolve().parents[1])
_INTERNAL = tuple(f"{_PACKAGE}/{part}/" for part in ("_core", "autograd", "profiler"))
_INTERNAL += ("<torchlab",)  # generated calls


class Record:
    """One call. Times are nanoseconds of `time.perf_counter_ns`."""

    __slots__ = (
        "name", "overload", "start", "end", "thread", "kind", "scope", "seq", "forward_thread",
        "inputs", "stack", "flops", "timers",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, scope: int) -> None:
        self.name, self.kind, self.scope = name, kind, scope
        self.overload: str = ""
        self.seq = -1
        self.forward_thread = 0
        self.inputs: Inputs | None = None
        self.stack: list[str] = []
        self.flops = 0
        self.timers: Any = None  # (event before, event after) on the device
        self.thread = threading.get_native_id()
        self.end = 0
        self.start = 0


class Inputs:
    """What is known of the arguments of a call."""

    __slots__ = ("shapes", "strides", "types", "concrete")

    def __init__(self, args: Any) -> None:
        self.shapes = [_each(a, lambda t: list(t.shape)) for a in args]
        self.strides = [_each(a, lambda t: list(t.stride())) for a in args]
        self.types = [_type(a) for a in args]
        self.concrete = ["" if _hastensors_in(a) else "" if a is None else str(a) for a in args]


_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char",
    "uint8": "unsigned char", "bool": "bool", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def _hastensors_in(a: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return any(isinstance(x, Tensor) for x in a)
    return isinstance(a, Tensor)


def _each(a: Any, fact: Callable[[Tensor], Any]) -> Any:
    if isinstance(a, Tensor):
        return fact(a)
    if isinstance(a, (list, tuple)) and any(isinstance(x, Tensor) for x in a):
        return [fact(x) if isinstance(x, Tensor) else [] for x in a]
    return []


def c_name(dtype: Any) -> str:
    """What C++ calls a type, as it stands in PyTorch's traces."""
    name = str(dtype).rsplit(".", 1)[-1]
    return _C_NAMES.get(name, name)


def _type(a: Any) -> str:
    if isinstance(a, Tensor):
        return c_name(a.dtype)
    if isinstance(a, (list, tuple)):
        return "TensorList" if _hastensors_in(a) else "ScalarList" if a else ""
    return "Scalar" if isinstance(a, (int, float, complex, bool)) else ""


def _stack() -> list[str]:
    """The Python calls that led here, the innermost first; those of the machinery left out."""
    found = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_INTERNAL):
            found.append(f"{_shortened(path)}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return found


_short: dict[str, str] = {}


def _shortened(path: str) -> str:
    """A path without the folder on `sys.path` that it was found in."""
    found = _short.get(path)
    if found is None:
        found = path
        for folder in sorted(sys.path, key=len, reverse=True):
            if folder and path.startswith(folder.rstrip("/") + "/"):
                found = path[len(folder.rstrip("/")) + 1 :]
                break
        _short[path] = found
    return found


class Memory:
    """A tensor's memory taken (more than 0 bytes) or given back (fewer)."""

    __slots__ = ("time", "thread", "bytes", "address", "device")

    def __init__(self, at: int, nbytes: int, address: int, device: str) -> None:
        self.time, self.bytes, self.address, self.device = at, nbytes, address, device
        self.thread = threading.get_native_id()


def _owner(array: Any) -> Any:
    """The array that holds the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def tensors_in(values: Any) -> list[Tensor]:
    """The tensors among arguments or results, those in lists included."""
    found = []
    for x in values if isinstance(values, (list, tuple)) else (values,):
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found += [y for y in x if isinstance(y, Tensor)]
    return found


class _Watch:
    """The mode that sees the operators of a thread."""

    below_autograd = True
    looks_on = True

    def __init__(self, owner: Collector) -> None:
        self.owner = owner

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        owner, schema = self.owner, func._schema
        record = owner.begin(schema.name, "cpu_op", FUNCTION)
        record.overload = schema.overload_name
        owner.describe(record, schema.name, args)
        if any(t.requires_grad for t in tensors_in(args)):
            record.seq = next_seq() + 1  # the number that the node will get
        if owner.device is not None:
            record.timers = owner.timed(args)
        record.start = time.perf_counter_ns()
        try:
            result = func(*args, **(kwargs or {}))
            if owner.memory:
                owner.look_at(result, args)
            if record.timers is not None:
                record.timers[1].record()
        finally:
            record.end = time.perf_counter_ns()
        return result

    def around(self, op: Any, args: Any) -> Any:
        """A composite: PyTorch's operator that is made of others."""
        if not op.public or op.name.startswith("_"):
            return op.core(*args)
        owner = self.owner
        record = owner.begin(f"aten::{op.name}", "cpu_op", FUNCTION)
        record.overload = "" if op.overload == "default" else op.overload
        owner.describe(record, "", args)
        record.start = time.perf_counter_ns()
        try:
            return op.core(*args)
        finally:
            record.end = time.perf_counter_ns()


class Collector:
    """Collects records between `start` and `stop`. What is collected is chosen when it is made."""

    def __init__(
        self,
        shapes: bool = False,
        memory: bool = False,
        stack: bool = False,
        flops: bool = False,
        modules: bool = False,
        device: str | None = None,
    ) -> None:
        self.shapes, self.memory, self.stack, self.flops = shapes, memory, stack, flops
        self.modules, self.device = modules, device
        self.records: list[Record] = []
        self.memories: list[Memory] = []
        self.began = self.ended = self.wall = 0
        self.paused = False
        self._step_ended: dict[int, int] = {}
        self._known: dict[int, Any] = {}  # id of an array → the weak reference that tells its end
        self._open: list[Any] = []

    # ---- on and off -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look at this thread's operators."""
        self.records, self.memories = [], []
        self.wall, self.began = time.time_ns(), time.perf_counter_ns()
        self._mode = _Watch(self)
        self.resume()

    def stop(self) -> None:
        """Stop looking."""
        if not self.paused:
            self.pause()
        self.paused = False
        self.ended = time.perf_counter_ns()
        self._known = {}

    def resume(self) -> None:
        """Look again, after `pause`."""
        self.paused = False
        LISTENERS.append(self)
        self._open = [
            events.backward_begin.subscribe(self._backward_begins),
            events.backward_step.subscribe(self._backward_stepped),
        ]
        if self.memory:
            self._open += [
                events.block_alloc.subscribe(self._block_taken),
                events.block_free.subscribe(self._block_freed),
            ]
        if self.modules:
            self._open += [switch(self) for switch in MODULE_SPANS]
        python_key.on(self._mode)

    def pause(self) -> None:
        """Look at nothing until `resume`; what has been collected stays."""
        python_key.off(self._mode)
        LISTENERS.remove(self)
        for opened in self._open:
            opened.close()
        self._open = []
        self.paused = True

    # ---- calls ----------------------------------------------------------------------------------

    def begin(self, name: str, kind: str, scope: int) -> Record:
        """A new record."""
        record = Record(name, kind, scope)
        self.records.append(record)
        return record

    def block_begins(self, name: str) -> Record:
        """A block (torchlab._core.blocks) begins."""
        record = self.begin(name, "user_annotation", USER)
        record.start = time.perf_counter_ns()
        return record

    def block_ends(self, record: Record) -> None:
        """It ends."""
        record.end = time.perf_counter_ns()

    def describe(self, record: Record, name: str, args: Any) -> None:
        """Note of the arguments and the caller what was asked for."""
        if self.shapes:
            record.inputs = Inputs(args)
        if self.stack:
            record.stack = _stack()
        if self.flops and name:
            record.flops = flops_of(name, args)

    def timed(self, args: Any) -> Any:
        """Two events around a call on the device, the first recorded; None on others."""
        if not any(t.device.type == self.device for t in tensors_in(args)):
            return None
        first, last = _gpus.cupy.cuda.Event(), _gpus.cupy.cuda.Event()
        first.record()
        return first, last

    # ---- backward -------------------------------------------------------------------------------

    def _backward_begins(self, roots: Any) -> None:
        self._step_ended[threading.get_native_id()] = time.perf_counter_ns()

    def _backward_stepped(self, node: Any, grad_outputs: Any, grad_inputs: Any) -> None:
        now, thread = time.perf_counter_ns(), threading.get_native_id()
        record = self.begin(node.name(), "cpu_op", BACKWARD)
        record.start, record.end = self._step_ended.get(thread, now), now
        record.seq = -1 if type(node) is AccumulateGrad else node._sequence_nr()
        if self.shapes:
            record.inputs = Inputs(grad_outputs or ())
        self._step_ended[thread] = now

    # ---- memory ---------------------------------------------------------------------------------

    def look_at(self, result: Any, args: Any) -> None:
        """Note new memory of the CPU in the results of a call."""
        given = {id(_owner(t._a)) for t in tensors_in(args) if isinstance(t._a, np.ndarray)}
        for t in tensors_in(result):
            if type(t) is not Tensor or t.device.type != "cpu" or not isinstance(t._a, np.ndarray):
                continue
            array = _owner(t._a)
            key = id(array)
            if key in given or key in self._known or not array.nbytes:
                continue
            nbytes, address = array.nbytes, array.ctypes.data
            self._known[key] = weakref.ref(array, self._freed(key, nbytes, address))
            self.memories.append(Memory(time.perf_counter_ns(), nbytes, address, "cpu"))

    def _freed(self, key: int, nbytes: int, address: int) -> Callable[[Any], None]:
        known, memories = self._known, self.memories

        def freed(_: Any) -> None:
            if known.pop(key, None) is not None and self.ended < self.began:
                memories.append(Memory(time.perf_counter_ns(), -nbytes, address, "cpu"))

        return freed

    def _block_taken(self, device: str, address: int, size: int, **_: Any) -> None:
        self.memories.append(Memory(time.perf_counter_ns(), size, address, device))

    def _block_freed(self, device: str, address: int, size: int, **_: Any) -> None:
        self.memories.append(Memory(time.perf_counter_ns(), -size, address, device))


__all__ = [
    "BACKWARD", "FUNCTION", "MODULE_SPANS", "USER", "Collector", "Inputs", "Memory", "Record",
    "c_name", "tensors_in",
]  # fmt: skip
