"""`torch._subclasses.fake_tensor`: tensors with a shape, strides, a type and a device, but no data.

A fake tensor is a tensor of the meta device that says it lies elsewhere. An operator on fakes runs
on their meta tensors, by the rules that every declaration has, and what comes is fake again; sizes
may be symbolic. What only data can tell is an error.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_fake_tensor.html
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import as_device, cpu, device
from torchlab._core.dispatch.duals import Dual
from torchlab._core.dispatch.levels import Level
from torchlab._core.dispatch.modes import disabled_function
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.dispatch.wrappers import leaf, wrapper_kind
from torchlab._core.kind import kind
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import storage_of
from torchlab._core.tensor import Parameter, Tensor, strides_of
from torchlab.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

META = device("meta")

_VALUES = frozenset(("_local_scalar_dense", "equal", "item", "is_nonzero", "allclose"))
_SHAPES = frozenset(
    (
        "nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive",
        "bincount", "unique", "argwhere", "nonzero_numpy", "histogram",
    )
)  # fmt: skip


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be made fake: sparse, quantized or of a user's class."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _OfOperator(RuntimeError):
    def __init__(self, func: OpOverload) -> None:
        super().__init__(str(func))
        self.func = func


class DataDependentOutputException(_OfOperator):
    """The operator gives a number that only the data can tell."""


class DynamicOutputShapeException(_OfOperator):
    """The operator's result has a shape that only the data can tell."""


class UnsupportedOperatorException(_OfOperator):
    """The operator has no rule for shapes alone."""


class FakeTensor(Tensor):
    """A tensor without data. `fake_mode` is the mode that made it; `constant` the real tensor where
    it is known, as for a number that the program wrote."""

    fake_mode: FakeTensorMode
    constant: Tensor | None

    __torch_function__ = disabled_function

    def __new__(
        cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any, constant: Tensor | None = None
    ) -> FakeTensor:
        """A fake of the meta tensor `elem` that says it is on `device`."""
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        found = as_device(device)
        if found.type == "meta" and not fake_mode.allow_meta:
            raise AssertionError("a FakeTensor lies on another device than meta")
        r: Any = object.__new__(cls)
        r._a = elem._a
        r._k = _kind_of(elem, found)
        r._s = storage_of(elem)
        r._e = r._v = r._g = None
        r.fake_mode, r.constant = fake_mode, constant
        return r  # type: ignore[no-any-return]

    @property
    def fake_device(self) -> device:
        """The device that it says it is on."""
        return self._k.device

    def snapshot(self) -> FakeTensor:
        """A fake like this is now, without history."""
        return leaf(  # type: ignore[no-any-return]
            self.fake_mode.wrap(_meta_of(self), self.device), self.requires_grad
        )

    @classmethod
    def __torch_dispatch__(
        cls, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        mode = next(x.fake_mode for x in _leaves((args, kwargs)) if isinstance(x, FakeTensor))
        return mode.dispatch(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Values, which a fake has not: DataDependentOutputException."""
        return [x.tolist() for x in self] if self.dim() else self.item()

    def numpy(self, *, force: bool = False) -> Any:
        """Values, which a fake has not: RuntimeError."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        facts = ["..."]
        if self.device is not cpu:
            facts.append(f"device='{self.device}'")
        facts.append(f"size=({', '.join(map(str, self.shape))}{',' * (self.dim() == 1)})")
        if self.dtype is not dt.get_default_dtype():
            facts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        text = f"FakeTensor({', '.join(facts)})"
        return f"Parameter({text})" if self._is_param else text

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __deepcopy__(self, memo: Any) -> FakeTensor:
        made = self.fake_mode.wrap(_meta_of(self), self.device, self.constant)
        return leaf(made, self.requires_grad)  # type: ignore[no-any-return]


def is_fake(x: object) -> bool:
    """Whether a tensor is a fake, or what a transform has wrapped is one."""
    while isinstance(x, Level):
        x = x.primal if isinstance(x, Dual) else x.value  # type: ignore[attr-defined]
    return isinstance(x, FakeTensor)


class FakeTensorMode(TorchDispatchMode):
    """`with FakeTensorMode():` every tensor that is made is fake.

    allow_non_fake_inputs: real tensors that meet fakes are made fake. shape_env: where the sizes of
    tensors that `from_tensor` takes become symbols. static_shapes: sizes stay numbers, which is
    what happens without a `shape_env`.
    """

    allow_meta = False
    no_data = True  # what makes tensors is asked to make them known (dispatch.factories)

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.export = export
        self._known: dict[int, tuple[weakref.ref[Tensor], FakeTensor]] = {}

    # ---- making fakes ----------------------------------------------------------------------------

    def wrap(self, meta: Tensor, dev: device, constant: Tensor | None = None) -> FakeTensor:
        """A fake around a meta tensor."""
        return FakeTensor(self, meta, dev, constant)

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
        sizes: Sequence[Any] | None = None,
    ) -> FakeTensor:
        """A fake like a real tensor; the same one for the same tensor. `sizes`: its shape in
        symbolic numbers (torchlab's own; else every size gets a symbol, if the mode has a
        `shape_env` and not `static_shapes`)."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError(_mixed(tensor.fake_mode, self))
            return tensor
        found = self._known.get(id(tensor))
        if found is not None and found[0]() is tensor and sizes is None:
            return found[1]
        if tensor._exotic or (type(tensor) not in (Tensor, Parameter) and not tensor._is_param):
            raise UnsupportedFakeTensorException(
                f"a tensor of the class {type(tensor).__name__} ({tensor.layout}) cannot be made"
                " fake; only dense tensors can"
            )
        still = self.static_shapes if static_shapes is None else static_shapes
        shape = tuple(tensor._a.shape)
        if sizes is None and not still and self.shape_env is not None:
            sizes = self._symbols(shape, source)
        strides = strides_of(tensor)
        if sizes is not None:
            strides = symbolic_strides(shape, strides, sizes)
            shape = tuple(sizes)
        a = MetaArray(shape, tensor._a.dtype, strides, tensor.storage_offset())
        made = self.wrap(plain(a, tensor.dtype), tensor.device)
        leaf(made, tensor.requires_grad)
        if tensor._is_param:
            made._is_param = True
        self._known[id(tensor)] = (weakref.ref(tensor), made)
        return made

    def _symbols(self, shape: Sequence[int], source: Any) -> list[Any]:
        """A symbol for each size but 0 and 1; the same for equal ones."""
        make = self.shape_env.duck_symint
        return [n if n in (0, 1) else make(n, f"{source}.size({i})") for i, n in enumerate(shape)]

    # ---- running operators -----------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """The result of an operator, by its rule for shapes."""
        name = func._opname
        if name == "lift_fresh":
            return self.from_tensor(args[0]) if args[0].numel() > 1 else self._constant(args[0])
        leaves = [x for x in _leaves((args, kwargs)) if isinstance(x, Tensor)]
        known = self._of_constants(func, args, kwargs, leaves)
        if known is not NotImplemented:
            return known
        if name in _VALUES:
            raise DataDependentOutputException(func)
        if name in _SHAPES or (name in ("index", "_index") and _masks(args)):
            raise DynamicOutputShapeException(func)
        if name == "repeat_interleave" and isinstance(args[-1], Tensor) and len(args) == 1:
            raise DynamicOutputShapeException(func)
        fakes = {}
        for x in leaves:
            fakes[id(x)] = self._entered(x, func, args, kwargs)
        dev = self._device(func, fakes.values(), args, kwargs)
        metas = {i: _meta_of(f) for i, f in fakes.items()}
        backwards = {id(metas[i]): f for i, f in fakes.items()}

        def enter(x: Any) -> Any:
            if isinstance(x, Tensor):
                return metas[id(x)]
            return META if isinstance(x, device) else x

        told = _mapped(enter, args), _mapped(enter, kwargs)
        try:
            with _disable_current_modes():
                result = func(*told[0], **told[1])
        except NotImplementedError as error:
            if "no meta rule" in str(error) or "no layout rule" in str(error):
                raise UnsupportedOperatorException(func) from error
            raise
        for i, f in fakes.items():
            if metas[i]._a is not f._a:  # written: another geometry
                f._a, f._k = metas[i]._a, _kind_of(metas[i], f.device)
        if func.parsed.is_mutable:
            for f in fakes.values():
                f.constant = None

        def leave(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            found = backwards.get(id(x))
            if found is not None:
                return found
            return self.wrap(x, dev) if x.device.type == "meta" else self.from_tensor(x)

        return _mapped(leave, result)

    def _constant(self, real: Tensor) -> FakeTensor:
        made = self.from_tensor(real, static_shapes=True)
        made.constant = real
        return made

    def _of_constants(self, func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """What an operator on numbers that the program wrote gives: it is known, too."""
        if not leaves or func.parsed.is_mutable:
            return NotImplemented
        if not all(isinstance(x, FakeTensor) and x.constant is not None for x in leaves):
            return NotImplemented

        def enter(x: Any) -> Any:
            return x.constant if isinstance(x, FakeTensor) else x

        with _disable_current_modes():
            result = func(*_mapped(enter, args), **_mapped(enter, kwargs))
        if not isinstance(result, Tensor):
            return result
        return self._constant(result) if result.numel() <= 1 else self.from_tensor(result)

    def _entered(self, x: Tensor, func: Any, args: Any, kwargs: Any) -> FakeTensor:
        if isinstance(x, FakeTensor):
            if x.fake_mode is not self:
                raise AssertionError(_mixed(x.fake_mode, self))
            return x
        if not self.allow_non_fake_inputs:
            shown = ", ".join(_shown(a) for a in (*args, *kwargs.values()))
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with"
                f" 'allow_non_fake_inputs'. Found in {func}({shown})"
            )
        return self.from_tensor(x, static_shapes=True)

    @staticmethod
    def _device(func: OpOverload, fakes: Any, args: Any, kwargs: Any) -> device:
        """Where the result says it is."""
        named = [x for x in (*args, *kwargs.values()) if isinstance(x, device)]
        if named:
            return named[0]
        found: device | None = None
        scalar = True  # so far only tensors without dims, which may join any device
        for f in fakes:
            d = f.device
            if found is None or (scalar and f.dim()):
                if found is not None and d is not found and not (scalar and found is cpu):
                    raise _mismatch(func, found, d)
                found, scalar = d, not f.dim()
            elif d is not found and (f.dim() or d is not cpu):
                raise _mismatch(func, found, d)
        return found or cpu


def _mismatch(func: Any, a: Any, b: Any) -> RuntimeError:
    return RuntimeError(
        f"Unhandled FakeTensor Device Propagation for {func}, found two different devices {a}, {b}"
    )


def _mixed(a: Any, b: Any) -> str:
    return f"Mixing fake modes NYI x.fake_mode={a} vs self={b}"


def _shown(x: Any) -> str:
    if isinstance(x, FakeTensor) or not isinstance(x, Tensor):
        return repr(x)
    return f"tensor([...], size=({', '.join(map(str, x.shape))}))"


def _masks(args: Any) -> bool:
    """Whether an index has a mask in it."""
    return len(args) > 1 and any(
        isinstance(x, Tensor) and x.dtype in (dt.bool_, dt.uint8) for x in args[1]
    )


# ---- the meta tensor inside ----------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _meta_kind(dtype: dt.dtype) -> Any:
    return kind(dtype, META)


def plain(a: MetaArray, dtype: dt.dtype) -> Tensor:
    """A meta tensor of a layout."""
    t = object.__new__(Tensor)
    t._a = a
    k = _meta_kind(dtype)
    t._k = k if a.flags.c_contiguous else k.v
    t._s = Storage(a)  # type: ignore[arg-type]
    t._e = t._v = t._g = None
    return t


def _meta_of(f: FakeTensor) -> Tensor:
    t = object.__new__(Tensor)
    t._a, t._s = f._a, f._s
    k = _meta_kind(f._k.dtype)
    t._k = k if f._k.contiguous else k.v
    t._e = t._v = t._g = None
    return t


def _kind_of(meta: Tensor, dev: device) -> Any:
    k = wrapper_kind(meta._k.dtype, dev)
    return k if meta._k.contiguous else k.v


def symbolic_strides(
    shape: Sequence[int], strides: Sequence[int], sizes: Sequence[Any]
) -> tuple[Any, ...]:
    """The strides that a layout has when its sizes are those of `sizes`: each is the product of
    the sizes inside, where it is so now; others stay numbers."""
    if layout.is_contiguous(tuple(shape), tuple(strides)):
        return layout.contiguous_strides(tuple(sizes))
    out: list[Any] = list(strides)
    expected: int = 1
    symbolic: Any = 1
    for d in sorted(range(len(shape)), key=lambda i: (strides[i], shape[i] == 1)):
        if shape[d] == 1 or strides[d] != expected:
            continue
        out[d] = symbolic
        expected, symbolic = expected * shape[d], symbolic * sizes[d]
    return tuple(out)


def _mapped(fn: Any, x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)([_mapped(fn, y) for y in x])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_mapped(fn, y) for y in x))
    if isinstance(x, (list, tuple)):
        return [_mapped(fn, y) for y in x]
    if isinstance(x, dict):
        return {k: _mapped(fn, v) for k, v in x.items()}
    return fn(x)


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [z for y in x for z in _leaves(y)]
    if isinstance(x, dict):
        return [z for y in x.values() for z in _leaves(y)]
    return [x]


__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
    "UnsupportedFakeTensorException", "UnsupportedOperatorException", "plain",
    "symbolic_strides",
]  # fmt: skip
