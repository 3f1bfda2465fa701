"""The tensor: an array in a storage, its kind, its place on the tape.

Slots, not properties, carry what the generated calls touch:
    _a  the strided NumPy (CuPy) array over the storage; on the meta device only shape and strides
    _k  the Kind: dtype, device, contiguous, inference
    _e  the edge of the tape (see torchlab._core.tape)
    _s  the Storage, or None: nobody has aliased, saved or written to this tensor
    _v  for views: the base tensor, or a ViewMeta
    _g  the gradient
Operators become methods when their declaration is first used (see torchlab._core.dispatch).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.device import cpu, device
from torchlab._core.formats import channels_last, contiguous_format, strided
from torchlab._core.hooks import RETAINING, Hooks, RemovableHandle, hooks_of
from torchlab._core.kind import Kind
from torchlab._core.memory.storage import Storage
from torchlab._core.pytree import keyed_sequence, register_pytree_node
from torchlab._core.tape import (
    NOWHERE,
    TLS,
    AccumulateGrad,
    Out,
    accumulator,
    base_of,
    edge_asked,
    geometry,
    nobody,
    park,
    wants_changed,
    wants_grad,
)
from torchlab._core.tape import _tensor_class as _tape_tensor_class

if TYPE_CHECKING:
    from typing import Self


class Size(tuple):
    """The shape of a tensor: a tuple with `numel()`."""

    __slots__ = ()
    __module__ = "torchlab"  # as `type(x)` is printed

    def numel(self) -> int:
        n = 1
        for x in self:
            n *= x
        return n

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, i: Any) -> Any:
        r = tuple.__getitem__(self, i)
        return Size(r) if type(r) is tuple else r

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n: Any) -> Any:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__


register_pytree_node(
    Size,
    lambda size: (list(size), None),
    lambda dims, _: tuple(dims),  # leaves may be anything
    serialized_type_name="torch.Size",
    flatten_with_keys_fn=lambda size: (keyed_sequence(size), None),
)


class Tensor:
    """A multi-dimensional array of elements of one type, on one device, recorded by the tape.

    Source: https://docs.pytorch.org/docs/2.13/tensors.html
    """

    __module__ = "torchlab"
    __slots__ = ("_a", "_k", "_e", "_s", "_v", "_g", "__dict__", "__weakref__")
    __array_priority__ = 1000
    _is_param = False
    _exotic = False  # see Note [Exotic tensors] in torchlab._core.dispatch.exotic
    _level = 0  # see Note [Levels] in torchlab._core.dispatch.levels

    _a: Any
    _k: Kind
    _e: Any
    _s: Storage | None
    _v: Any
    _g: Tensor | None

    if TYPE_CHECKING:
        # Methods come from the declarations when they are first used; the stubs in
        # torchlab/__init__.pyi list them for users.
        def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __neg__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return Size(self._a.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its entries."""
        if dim is None:
            return Size(self._a.shape)
        return self._a.shape[layout.wrap_dim(dim, self._a.ndim, "size")]

    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements, or one of them."""
        strides = strides_of(self)
        return strides if dim is None else strides[layout.wrap_dim(dim, len(strides), "stride")]

    def storage_offset(self) -> int:
        """Where the first element lies in the storage, in elements."""
        return geometry(self)[2]

    @property
    def dtype(self) -> dt.dtype:
        return self._k.dtype

    @property
    def device(self) -> device:
        return self._k.device

    @property
    def layout(self) -> Any:
        return strided

    @property
    def ndim(self) -> int:
        return self._a.ndim

    def dim(self) -> int:
        return self._a.ndim

    ndimension = dim

    def numel(self) -> int:
        return self._a.size

    nelement = numel

    @property
    def itemsize(self) -> int:
        return self._k.itemsize

    def element_size(self) -> int:
        return self._k.itemsize

    @property
    def nbytes(self) -> int:
        return self._a.size * self._k.itemsize

    def get_device(self) -> int:
        d = self._k.device
        return -1 if d.index is None else d.index

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements lie in memory in row-major (or the given format's) order."""
        if memory_format is None or memory_format is contiguous_format:
            return self._k.contiguous
        return layout.is_channels_last(self._a.shape, strides_of(self)) and (
            self._a.ndim == (4 if memory_format is channels_last else 5)
        )

    def is_floating_point(self) -> bool:
        return self._k.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._k.dtype.is_complex

    def is_signed(self) -> bool:
        return self._k.dtype.is_signed

    def is_inference(self) -> bool:
        return self._k.inference

    is_cpu = property(lambda self: self._k.device is cpu)
    is_cuda = property(lambda self: self._k.device.type == "cuda")
    is_sim = property(lambda self: self._k.device.type == "sim")
    is_meta = property(lambda self: self._k.device.type == "meta")
    is_sparse = is_sparse_csr = is_quantized = is_mkldnn = is_nested = property(lambda self: False)

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    # ---- storage and views -----------------------------------------------------------------------

    @property
    def _version(self) -> int:
        if self._k.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._s is None else self._s.version

    @property
    def _base(self) -> Tensor | None:
        return base_of(self)

    def _is_view(self) -> bool:
        return self._v is not None

    def data_ptr(self) -> int:
        """The address of the first element; 0 for tensors without elements."""
        a = self._a
        return a.__array_interface__["data"][0] if a.size and self._k.device.type != "meta" else 0

    # ---- the tape --------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return wants_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        e = self._e
        if value and e is not None and type(e) is not AccumulateGrad:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for (or stop) gradients with respect to this leaf; returns the tensor."""
        e = self._e
        if requires_grad:
            if e is None or type(e) is AccumulateGrad and e.leaf is nobody:
                if not self._k.differentiable:
                    raise RuntimeError(
                        "only Tensors of floating point and complex dtype can require gradients,"
                        f" not {self._k.dtype}; convert it first, for example with .float()"
                    )
                if self._k.inference and not TLS.inference:
                    raise RuntimeError(
                        "Setting requires_grad=True on inference tensor outside InferenceMode is"
                        " not allowed."
                    )
                self._e = accumulator(self)
                s = self._s
                if s is not None and self._v is None:
                    wants_changed(s)
        elif e is not None and not (type(e) is AccumulateGrad and e.leaf is nobody):
            if type(e) is not AccumulateGrad:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use"
                    " a computed variable in a subgraph that doesn't require differentiation use"
                    " var_no_grad = var.detach()."
                )
            park(self, e)  # what was recorded before gives it no gradient either
            self._e = None
            s = self._s
            if s is not None:
                wants_changed(s)
        return self

    @property
    def is_leaf(self) -> bool:
        e = edge_asked(self)
        return e is None or type(e) is AccumulateGrad

    @property
    def grad_fn(self) -> Any:
        e = edge_asked(self)
        if e is None or type(e) is AccumulateGrad:
            return None
        return e.node if type(e) is Out else e

    @property
    def output_nr(self) -> int:
        e = self._e
        return e.nr if type(e) is Out else 0

    @property
    def grad(self) -> Tensor | None:
        if self._g is None and type(self._e) is not AccumulateGrad and self._e is not None:
            warn_non_leaf_grad(self)
        return self._g

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    "assigned grad expected to be a Tensor or None but got grad of type"
                    f" {type(value)}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._k.dtype is not self._k.dtype:
                raise RuntimeError(
                    f"assigned grad has data of a different type: {value.dtype} for a tensor of"
                    f" {self.dtype}"
                )
            if value._k.device is not self._k.device:
                raise RuntimeError(
                    f"assigned grad has data located on a different device: {value.device}, not"
                    f" {self.device}"
                )
            if value._a.shape != self._a.shape:
                raise RuntimeError(
                    f"assigned grad has data of a different size: {list(value.shape)}, not"
                    f" {list(self.shape)}"
                )
        self._g = value

    @grad.deleter
    def grad(self) -> None:
        self._g = None

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf tensor in the next backward, too."""
        e = edge_asked(self)
        if e is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if type(e) is AccumulateGrad:
            return
        node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
        hooks_of(node).retain[nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        if RETAINING and id(self) in RETAINING:
            return True
        e = self._e
        if e is None or type(e) is AccumulateGrad:
            return False
        node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
        return node._hooks is not None and nr in node._hooks.retain

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` when the gradient of this tensor is known; it may return a new one."""
        e = edge_asked(self)
        if e is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if e is NOWHERE:
            return Hooks().add("tensor", hook, 0)  # never called
        node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
        return hooks_of(node).add("tensor", hook, nr)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` each time `.grad` of this leaf has been updated."""
        e = self._e
        if type(e) is not AccumulateGrad:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        return (Hooks() if e is NOWHERE else hooks_of(e)).add("accumulated", hook)

    # ---- Python ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._a.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._a.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[Tensor]:
        if self._a.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]


_tape_tensor_class.append(Tensor)
Kind.cls = Tensor


class _ParameterMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        """Instances of subclasses of Tensor that were marked count, too."""
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and instance._is_param
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that modules register as their own. Full story: `torchlab.nn.Parameter`."""

    __slots__ = ()
    _is_param = True


def strides_of(t: Any) -> tuple[int, ...]:
    """Strides in elements. NumPy's zero-size strides are bytes of its own choosing: use
    PyTorch's."""
    a = t._a
    size = a.itemsize
    if a.size == 0 and t._k.contiguous:
        return layout.contiguous_strides(a.shape)
    return tuple(x // size for x in a.strides)


def warn_non_leaf_grad(t: Tensor) -> None:
    if t.retains_grad:
        return
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad"
        " attribute won't be populated during autograd.backward(). If you indeed want the .grad"
        " field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
        stacklevel=3,
    )
