"""What the makers of tensors share: how an option is read, sizes, memory formats, the last step of
a new tensor.

Note [Options of makers]
~~~~~~~~~~~~~~~~~~~~~~~~
`dtype`, `layout`, `device`, `pin_memory`, `requires_grad`, `memory_format` and `out` mean the same
for every maker, so they are read in one place: `How`. A maker is declared with
`torchlab._core.ops._makers.maker`, gets a `How` as its first argument and asks it for the tensor.

PyTorch's makers are two operators: an empty tensor of the wanted layout is made, and then filled.
That is why `torch.rand(2, layout=torch.sparse_coo)` fails at `uniform_`, which sparse tensors have
not got, and why `torch.ones(2, 3, layout=torch.sparse_csr)` succeeds without an element: what fills
a compressed tensor fills the elements that it has. `How.unlike` does the same.

Source: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

from typing import Any, NoReturn

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import layout as layouts
from torchlab._core.backends import accelerator, pinned
from torchlab._core.device import AWAY
from torchlab._core.dispatch import compute, exotic, resizing, writes
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import (
    channels_last,
    channels_last_3d,
    define,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from torchlab._core.kind import kind
from torchlab._core.tape import NOGRAD, TLS, AccumulateGrad
from torchlab._core.tensor import Tensor, strides_of

_new = object.__new__
_LONGEST = 2**63 - 1
COO = define(layout, "sparse_coo")
# dtype → (NumPy dtype, kind); None stands for the default type.
FACTS: dict[dt.dtype | None, tuple[Any, Any]] = {}
dt.default_changed.append(FACTS.pop)


def plain(size: Any, make: Any, dtype: Any = None) -> Tensor | None:
    """What a maker called with sizes and at most a dtype gives while nothing of this thread is
    special: a row-major host tensor around `make(shape, NumPy dtype)`. None otherwise."""
    if SLOW or AWAY:
        return None
    shape = size
    for x in shape:
        if type(x) is not int or x < 0:
            if len(size) != 1 or type(x) is not tuple:
                return None
            shape = x
            for y in shape:
                if type(y) is not int or y < 0:
                    return None
    facts = FACTS.get(dtype)
    if facts is None:
        d = dt.get_default_dtype() if dtype is None else dtype
        if type(d) is not dt.dtype or d in dt.QUANTIZED:
            return None
        facts = FACTS[dtype] = d.np, kind(d)
    t = _new(Tensor)
    try:
        t._a = make(shape, facts[0])
    except (MemoryError, ValueError):  # said by the long way, in PyTorch's words
        return None
    t._k = facts[1]
    t._e = t._s = t._v = t._g = None
    return t


class How:
    """The options of one call. `dtype` and `device` are None if the call leaves them open; `layout`
    is None for strided tensors."""

    __slots__ = ("name", "out", "dtype", "layout", "device", "pinned", "grad", "format")

    dtype: Any
    layout: Any
    device: Any
    format: Any

    def __init__(
        self,
        name: str,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: Any = False,
        pin_memory: Any = False,
        memory_format: Any = None,
    ) -> None:
        self.name = name
        self.out = out
        self.dtype = dtype
        self.device = device
        self.grad = requires_grad
        self.layout = self.format = None
        self.pinned = False
        if dtype is not None and type(dtype) is not dt.dtype:
            self.dtype = dt.of_type(dtype)
            if self.dtype is None:
                self._wrong("dtype", "torch.dtype", dtype)
        if device is not None:
            self.device = devices.as_device(device)
        if requires_grad is not False and type(requires_grad) is not bool:
            self.grad = self._flag("requires_grad", requires_grad)
        if not (pin_memory is False and layout is memory_format is out is None):
            self._rarely(layout, pin_memory, memory_format)

    def _rarely(self, chosen: Any, pin_memory: Any, order: Any) -> None:
        """The options that hardly any call gives."""
        if chosen is not None and chosen is not strided:
            if not isinstance(chosen, layout):
                self._wrong("layout", "torch.layout", chosen)
            self.layout = chosen
        if order is not None:
            if not isinstance(order, memory_format):
                self._wrong("memory_format", "torch.memory_format", order)
            self.format = order
        self.pinned = self._flag("pin_memory", pin_memory) and self.out is None
        if self.out is not None:
            self._into(self.out)

    def _wrong(self, option: str, wanted: str, value: Any) -> NoReturn:
        raise TypeError(
            f"{self.name}(): argument '{option}' must be {wanted}, not {type(value).__name__}"
        )

    def _flag(self, option: str, value: Any) -> bool:
        if value is not None and type(value) is not bool:
            self._wrong(option, "bool", value)
        return bool(value)

    def check_pin(self) -> None:
        """RuntimeError if the tensor is to be in pinned memory and cannot; nothing for meta."""
        if not self.pinned:
            return
        where = self.place
        if self.layout is not None or where.type not in ("cpu", "meta"):
            raise RuntimeError(f"{self.name}(): Only dense CPU tensors can be pinned")
        if where.type == "cpu" and accelerator.kind() is None:
            raise RuntimeError(
                f"{self.name}(): pin_memory=True requires a CUDA or other accelerator backend; no"
                " pinned memory allocator is available on this system. Leave pin_memory out."
            )

    def _into(self, out: Any) -> None:
        """Check the other options against `out=`, and take from it what they leave open."""
        if not isinstance(out, Tensor):
            self._wrong("out", "Tensor", out)
        k: Any = out._k
        if self.dtype is not None and self.dtype is not k.dtype:
            raise RuntimeError(
                f"{self.name}(): dtype {self.dtype.scalar_name} does not match dtype of out"
                f" parameter ({k.dtype.scalar_name})"
            )
        has: Any = out.layout  # type: ignore[attr-defined]
        if self.layout is not None and self.layout is not has:
            raise RuntimeError(
                f"{self.name}(): layout {self.layout} does not match layout of out parameter"
                f" ({has})"
            )
        if self.device is not None and self.device is not k.device:
            raise RuntimeError(
                f"{self.name}(): device type {self.device} does not match device type of out"
                f" parameter ({k.device})"
            )
        if not NOGRAD or TLS.grad:
            writes.check_unrecorded_out(self, out, ())
        self.dtype, self.device = k.dtype, k.device
        self.layout = None if has is strided else has

    def after(self, t: Tensor) -> How:
        """With the dtype and device of `t` where the call leaves them open."""
        if self.dtype is None:
            self.dtype = t._k.dtype
        if self.device is None:
            self.device = t._k.device
        return self

    @property
    def place(self) -> devices.device:
        """The device on which the tensor will be."""
        return self.device or devices.as_device(None)

    @property
    def kind(self) -> dt.dtype:
        """The dtype, the default one if the call leaves it open."""
        return self.dtype or dt.get_default_dtype()

    @property
    def given(self) -> bool:
        """Whether the call says anything about the tensor, but for `out=`."""
        said = self.out is None and (self.dtype or self.device)
        return bool(said or self.layout or self.grad or self.pinned)

    def sizes(self, size: Any, more: Any = ()) -> tuple[int, ...]:
        """`f(2, 3)` and `f((2, 3))` both give (2, 3)."""
        return sizes_of((size, *more), self.name)

    # ---- tensors of other layouts ------------------------------------------------------------

    def sparse(self, what: str, shape: Any) -> Any:
        """A tensor of the wanted layout without elements; `what`: "empty" or "zeros"."""
        t = self._without_elements(what, shape)
        return t.requires_grad_() if self.grad else t

    def _without_elements(self, what: str, shape: Any) -> Any:
        self.check_pin()
        make = exotic.LAYOUTS[self.layout]
        return make(what, shape, self.dtype, self.device, False, self.layout)

    def unlike(self, shape: Any, then: str, *, compressed: bool = False) -> Any:
        """What PyTorch makes of another layout: an empty tensor, on which the operator `then`
        raises NotImplementedError. `compressed`: it goes well for compressed ones."""
        t = self._without_elements("empty", shape)
        if compressed and self.layout is not COO:
            return t.requires_grad_() if self.grad else t
        return self.refuse(then)

    def refuse(self, then: str) -> NoReturn:
        """Raise PyTorch's NotImplementedError for an operator that the layout has not got."""
        backend = "SparseCPU" if self.layout is COO else "SparseCsrCPU"
        exotic.CLASSES[backend][0].refuse(then, False, ())  # type: ignore[attr-defined]

    # ---- strided tensors ---------------------------------------------------------------------

    def empty(self, shape: Any, dtype: dt.dtype, strides: Any = None) -> Tensor:
        """An uninitialised tensor of that type, where the call wants it."""
        self.check_pin()
        return compute.empty(shape, dtype, self.place, strides, self.pinned)

    def like(self, t: Tensor) -> Tensor:
        """An uninitialised tensor of the size and memory format of `t`."""
        self.after(t)
        if self.layout is not None:
            self.formatless()
            self.refuse("empty_strided")
        strides = format_strides(t._a.shape, self.format or preserve_format, t)
        return self.empty(t._a.shape, self.kind, strides)

    def formatless(self) -> None:
        """RuntimeError for a memory format with another layout."""
        if self.format is not None:
            raise RuntimeError(
                f"{self.name}(): memory format option is only supported by strided tensors, not by"
                f" {self.layout}"
            )

    def filled(self, shape: Any, value: Any, dtype: dt.dtype, strides: Any = None) -> Any:
        """One value everywhere."""
        t = self.empty(shape, dtype, strides)
        if t._k.device.type != "meta":
            t._a.fill(value)
        return self.done(t, alike=True)

    def around(self, array: Any, dtype: dt.dtype, in_order: bool = False) -> Any:
        """The elements of a fresh host array of that dtype. `in_order`: an `out` of as many
        elements keeps its shape and gets them in its row-major order."""
        if in_order and self.out is not None and self.out._a.size == array.size:
            array = array.reshape(self.out._a.shape)
        if self.pinned:
            t = self.empty(array.shape, dtype)
            if t._k.device.type != "meta":
                t._a[...] = array
            return self.done(t)
        return self.done(compute.wrap_on(array, self.place, dtype))

    def done(self, t: Tensor, alike: bool = False) -> Any:
        """The last step of a new tensor: into `out`, or a leaf. `alike`: all elements are, so an
        expanded `out` will do."""
        if self.out is not None:
            t = into_out(self, t, self.out, alike)
            if type(t._e) is AccumulateGrad and not self.grad:  # (under no_grad)
                t.requires_grad_(False)  # type: ignore[attr-defined]
        elif self.pinned and t._k.device.type == "cpu" and not pinned.is_pinned(t._a):
            self.check_pin()
            t = aten._pin_memory(t)  # computed by other operators
        return finish(t, self.grad)


def finish(t: Tensor, requires_grad: bool = False) -> Tensor:
    """Inference tensors in inference mode; a leaf that wants gradients if asked."""
    if TLS.inference:
        t._k = t._k.i
    if type(requires_grad) is not bool:
        raise TypeError(
            f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}"
        )
    return t.requires_grad_() if requires_grad else t


def sizes_of(size: Any, name: str = "empty") -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` both give (2, 3)."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    try:
        out = tuple(x if type(x) is int else layouts.as_size(x) for x in size)
    except (TypeError, AttributeError):
        for i, x in enumerate(size):
            try:
                layouts.as_size(x)
            except TypeError:
                raise TypeError(
                    f"{name}(): argument 'size' must be tuple of ints, but found element of type"
                    f" {type(x).__name__} at pos {i}"
                ) from None
        raise
    for x in out:
        if type(x) is int and x > _LONGEST:
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos"
                f' {out.index(x) + 1} with error "Overflow when unpacking long long"'
            )
        if x < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {x}: {list(out)}")
    return out


def format_strides(shape: Any, memory_format: Any, like: Any = None) -> Any:
    """Strides for a memory format; None means row-major."""
    if memory_format is channels_last or memory_format is channels_last_3d:
        rank = 4 if memory_format is channels_last else 5
        if len(shape) != rank:
            name = memory_format.name.removeprefix("torch.")
            raise RuntimeError(
                f"required rank {rank} tensor to use {name} format, got shape {list(shape)}"
            )
        return layouts.channels_last_strides(tuple(shape))
    if memory_format is preserve_format and like is not None:
        return layouts.empty_like_strides(like._a.shape, strides_of(like))
    return None


def into_out(maker: Any, t: Tensor, out: Tensor, alike: bool = False) -> Tensor:
    """Write fresh values into `out`, resized to their shape; no maker has a derivative, which is
    what the history of `out` says from now on."""
    if out._exotic or out._level:
        out.resize_(t.shape)  # type: ignore[attr-defined]
        return out.copy_(t)  # type: ignore[attr-defined]
    shape = t._a.shape
    if out._a.shape != shape:
        resizing.resize(out, shape, layouts.contiguous_strides(shape), maker.name)
    elif not alike:
        writes.check_memory(maker, out, ())
    if out._k.device.type != "meta":
        out._a[...] = t._a
    writes.wrote(out)
    writes.leave_unrecorded(maker, out, ())
    return out
