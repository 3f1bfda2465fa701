"""What a profiler recorded: events, their averages, and intervals of memory records.

`FunctionEvent` is one call; `FunctionEventAvg` sums up calls of one name. How they are shown is in
torchlab.autograd.profiler_tables.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#profiler
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from enum import IntEnum
from typing import Any, NamedTuple


class DeviceType(IntEnum):
    """Where an event took place. The numbers are PyTorch's."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Kernel(NamedTuple):
    """A kernel that a call started on a device."""

    name: str
    device: int
    duration: float  # microseconds


class Interval:
    """From when to when, in microseconds since the profiler was entered."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long that is."""
        return self.end - self.start


class StringTable(defaultdict):
    """Numbers of strings to what they say; strings that nobody named are themselves."""

    def __missing__(self, key: Any) -> Any:
        self[key] = str(key)
        return self[key]


class EnforceUnique:
    """Raises if a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key. RuntimeError if it is known."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


class MemRecordsAcc:
    """Records of memory, found by time. A record has `start_ns()`."""

    def __init__(self, mem_records: Any) -> None:
        self._mem_records = mem_records
        order = sorted(range(len(mem_records)), key=lambda i: mem_records[i][0].start_ns())
        self._order = order
        self._starts = [mem_records[i][0].start_ns() for i in order]

    def in_interval(self, start_ns: int, end_ns: int) -> Any:
        """The records from `start_ns` to `end_ns`."""
        first = bisect.bisect_left(self._starts, start_ns)
        last = bisect.bisect_right(self._starts, end_ns)
        for i in range(first, last):
            yield self._mem_records[self._order[i]]


def format_time(us: float, unit: str | None = None) -> str:
    """Microseconds as text, in a unit that suits or in the one that is asked for."""
    if unit == "s" or unit is None and us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or unit is None and us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


class FormattedTimesMixin:
    """Times per call, and all times as text. Needs `count` and totals in microseconds."""

    count: int
    cpu_time_total: Any
    self_cpu_time_total: Any
    device_time_total: Any
    self_device_time_total: Any

    @property
    def cpu_time(self) -> float:
        """Microseconds on the CPU, per call."""
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """Microseconds on the device, per call."""
        return 0.0 if self.count == 0 else self.device_time_total / self.count

    @property
    def cuda_time(self) -> float:
        """The former name of `device_time`."""
        return self.device_time

    @property
    def cpu_time_str(self) -> str:
        return format_time(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        return format_time(self.device_time)

    @property
    def cpu_time_total_str(self) -> str:
        return format_time(self.cpu_time_total)

    @property
    def device_time_total_str(self) -> str:
        return format_time(self.device_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return format_time(self.self_cpu_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        return format_time(self.self_device_time_total)


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, a node of backward, or one `record_function` block."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict[str, Any] | None = None,
        structured_input_shapes: Any = None,
        structured_input_strides: Any = None,
        input_dtypes: Any = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        self.id, self.node_id, self.name, self.trace_name = id, node_id, name, trace_name
        self.overload_name = overload_name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes, self.concrete_inputs = input_shapes, concrete_inputs
        self.kwinputs = kwinputs
        self.stack = stack
        self.scope, self.use_device = scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.sequence_nr = sequence_nr
        self.device_type, self.device_index = device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.is_python_function, self.activity_type = is_python_function, activity_type
        self._metadata_json = metadata_json
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id, self.linked_correlation_id = external_id, linked_correlation_id
        self.extra_meta = extra_meta
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.input_dtypes = input_dtypes
        self.python_id, self.python_parent_id = python_id, python_parent_id
        self.python_module_id = python_module_id
        self.self_cpu_percent = self.total_cpu_percent = ""
        self.total_device_percent = ""

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Note a kernel that this call started on the CPU."""
        self._only_on_cpu("append_kernel")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note a call that ran within this one."""
        self._only_on_cpu("append_cpu_child")
        child._only_on_cpu("append_cpu_child")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the call that this one ran within."""
        self._only_on_cpu("set_cpu_parent")
        self.cpu_parent = parent

    def _only_on_cpu(self, name: str) -> None:
        if self.device_type != DeviceType.CPU:
            raise AssertionError(
                f"{name}: expected an event of the CPU, but '{self.name}' is of {self.device_type}"
            )

    @property
    def metadata_json(self) -> str:
        """What the trace says of it besides, as JSON."""
        return self._metadata_json or "{}"

    @property
    def key(self) -> str:
        return self.name

    def _on_cpu(self) -> bool:
        return self.device_type == DeviceType.CPU

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds, those of calls within included."""
        return self.time_range.elapsed_us() if self._on_cpu() else 0

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds outside of the calls within."""
        if self.is_async or not self._on_cpu():
            return 0
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds that its kernels ran, those of calls within included."""
        if self.is_async or not self.use_device:
            return 0
        if not self._on_cpu():
            return self.time_range.elapsed_us()
        own = sum(k.duration for k in self.kernels)
        if self.is_legacy:
            return own
        return own + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds that its own kernels ran."""
        if self.is_async or not self.use_device:
            return 0
        if not self._on_cpu():
            return self.device_time_total
        return self.device_time_total - sum(c.device_time_total for c in self.cpu_children)

    @property
    def cuda_time_total(self) -> float:
        """The former name of `device_time_total`."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """The former name of `self_device_time_total`."""
        return self.self_device_time_total

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it took and did not give back, without those of calls within."""
        if self.is_async or not self._on_cpu():
            return 0
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """As `self_cpu_memory_usage`, on the device."""
        if self.is_async or not self._on_cpu():
            return 0
        return self.device_memory_usage - sum(c.device_memory_usage for c in self.cpu_children)

    @property
    def self_cuda_memory_usage(self) -> int:
        """The former name of `self_device_memory_usage`."""
        return self.self_device_memory_usage

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name}"
            f" device_type={self.device_type} node_id={self.node_id}"
            f" cpu_time={self.cpu_time_str} start_us={self.time_range.start}"
            f" end_us={self.time_range.end} cpu_children={[c.id for c in self.cpu_children]}"
            f" {device}_time={self.device_time_str} name={self.name} thread={self.thread}"
            f" input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}"
            f" {device}_memory_usage={self.device_memory_usage} is_async={self.is_async}"
            f" is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_SUMMED = (
    "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total",
    "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage",
    "count",
)  # fmt: skip
_COPIED = (
    "key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
    "input_shapes", "stack", "scope", "device_type", "is_legacy", "use_device",
    "is_user_annotation",
)  # fmt: skip


class FunctionEventAvg(FormattedTimesMixin):
    """The calls of one name together."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = False
        self.is_user_annotation: bool | None = False
        self.use_device: str | None = None
        self.cpu_time_total = self.device_time_total = 0
        self.self_cpu_time_total = self.self_device_time_total = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type: DeviceType = DeviceType.CPU
        self.flops = 0
        self.self_cpu_percent = self.total_cpu_percent = ""
        self.total_device_percent = ""

    def add(self, other: Any) -> FunctionEventAvg:
        """Count a call, or several of the same name."""
        if self.key is None:
            for name in _COPIED:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(
                f"Expected other to be a FunctionEvent or a FunctionEventAvg, got {type(other)}"
            )
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match: {other.key} != {self.key}")
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.flops is not None:
            self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str}"
            f" cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str}"
            f" {device}_time={self.device_time_str} input_shapes={self.input_shapes}"
            f" cpu_memory_usage={self.cpu_memory_usage}"
            f" {device}_memory_usage={self.device_memory_usage}>"
        )


__all__ = [
    "DeviceType", "EnforceUnique", "FormattedTimesMixin", "FunctionEvent",
    "FunctionEventAvg", "Interval", "Kernel", "MemRecordsAcc", "StringTable", "format_time",
]  # fmt: skip
