"""What the generated calls do when the inlined case does not apply: promotion, broadcasting,
memory formats, devices. Everything here works on whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends import base, pinned
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import cpu, device
from torchlab._core.errors import no_host_memory
from torchlab._core.kind import CPU_KINDS, Kind, cpu_kind, kind
from torchlab._core.tape import (
    Out,
)
from torchlab._core.tensor import Parameter, Tensor, strides_of

NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_new = object.__new__


def wrap(r: Any) -> Tensor:
    """A tensor around a fresh host array."""
    if type(r) is not np.ndarray:
        r = np.asarray(r)
    t = _new(Tensor)
    t._a = r
    k = CPU_KINDS.get(r.dtype) or cpu_kind(r)
    t._k = k.c if r.flags.c_contiguous else k.v
    t._e = t._s = t._v = t._g = None
    return t


def wrap_on(r: Any, dev: device, dtype: dt.dtype | None = None) -> Tensor:
    """A tensor around a fresh array on `dev`; on `sim` the array moves into an allocator's
    block."""
    if dev is cpu:
        return wrap(r)
    backend = base.backend(dev)
    t = _new(Tensor)
    t._e = t._s = t._v = t._g = None
    t._a, t._s = backend.adopt(r)
    k = kind(dtype or dt.from_numpy(t._a.dtype), dev)
    t._k = k if t._a.flags.c_contiguous else k.v
    return t


def empty(
    shape: Any, dtype: dt.dtype, dev: device = cpu, strides: Any = None, locked: bool = False
) -> Tensor:
    """An uninitialised tensor; `strides` in elements must be dense. `locked`: in pinned memory, if
    it is on the CPU."""
    t = _new(Tensor)
    t._e = t._s = t._v = t._g = None
    if not isinstance(dtype, dt.dtype):
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if dev is cpu:
        try:
            make = pinned.empty_strided if locked else base.empty_strided
            t._a = make(shape, dtype.np, strides)
        except (MemoryError, ValueError) as error:
            raise no_host_memory(error, shape) or error from None
    else:
        t._a, t._s = base.backend(dev).allocate(shape, dtype.np, strides)
    k = kind(dtype, dev)
    t._k = k if t._a.flags.c_contiguous else k.v
    return t


def common_device(op: Any, tensors: list[Tensor]) -> device:
    """The one device of all operands; host tensors without dimensions may join any."""
    found: device | None = None
    for t in tensors:
        d = t._k.device
        if found is None or (found is not d and found is cpu and _all_zero_dim(tensors, cpu)):
            found = d
        elif d is not found and not (d is cpu and t._a.ndim == 0):
            raise RuntimeError(
                f"{op.name}: Expected all tensors to be on the same device, but found at least two"
                f" devices, {found} and {d}! Move one of them with .to('{found}')."
            )
    return found or cpu


def _all_zero_dim(tensors: list[Tensor], dev: device) -> bool:
    return all(t._a.ndim == 0 for t in tensors if t._k.device is dev)


# ---- numbers ------------------------------------------------------------------------------------

SCALARS: dict[Any, np.ndarray] = {}


def scalar_of(value: Any, cls: type, k: Kind) -> np.ndarray:
    """A Python number as a 0-d array of kind `k`, cached (but never zero: 0.0 == -0.0)."""
    a = operand_array(value, k.dtype)
    # What became another number is not kept: to other operators it may be an error.
    if value and (a == value if k.dtype.category == dt.INT else np.isfinite(a)):
        if len(SCALARS) > 4096:
            SCALARS.clear()
        SCALARS[value, cls, k] = a
    return a


_CHECKED = frozenset(
    "clamp clamp_min clamp_max _clamp_low _clamp_high lerp masked_fill where".split()
)


def operand_array(value: Any, dtype: dt.dtype, op: Any = None) -> np.ndarray:
    """A number in a tensor's place as a 0-d array of `dtype`: an integer that does not fit wraps
    around, but where the operator takes it as a number (its bounds, what it fills in)."""
    if op is not None and op.name in _CHECKED:
        return scalar_array(value, dtype, saturate=op.name == "where")
    if dtype.category == dt.INT:
        if isinstance(value, (int, np.integer)) and -_INT64 <= value < 2 * _INT64:
            return np.array(int(value) & (2 * _INT64 - 1), np.uint64).astype(dtype.np)
    elif type(value) is int and not -_INT64 <= value < 2 * _INT64:
        return scalar_array(value, dtype)  # which refuses it
    elif dtype.is_complex or dtype.is_floating_point and not isinstance(value, complex):
        with np.errstate(over="ignore"):
            return np.array(value, dtype=dtype.np)
    return scalar_array(value, dtype)


_INT64 = 1 << 63


def scalar_array(value: Any, dtype: dt.dtype, saturate: bool = False) -> np.ndarray:
    """The number as a 0-d array of `dtype`; numbers that do not fit raise as PyTorch does, but
    negative ones wrap around in unsigned types, and with `saturate` those beyond a 16-bit float
    become infinite."""
    fits = True
    if type(value) is int and not -_INT64 <= value < 2 * _INT64:  # as PyTorch reads it: before all
        small = "can't convert negative int to unsigned"
        raise OverflowError(small if value < 0 else f"int too big to convert: {value}")
    if dtype.category in (dt.INT, dt.FLOAT) and isinstance(value, (complex, np.complexfloating)):
        fits = value.imag == 0
        value = value.real if fits else value
    if not fits:
        pass
    elif dtype.category == dt.INT:
        bits = 8 * dtype.itemsize
        high = (1 << (bits - dtype.is_signed)) - 1
        low = -high - 1 if dtype.is_signed else -high
        if not isinstance(value, (int, np.integer, np.bool_)) and not dtype.is_signed:
            low = 0
        if low <= value <= high:
            return np.array(int(value) & ((1 << bits) - 1), np.uint64).astype(dtype.np)
        fits = False
    elif dtype in _MOST and not (saturate and dtype.itemsize == 2):
        size = max(abs(value.real), abs(value.imag))
        fits = not _MOST[dtype] < size < float("inf")
    if not fits:
        raise RuntimeError(
            f"value cannot be converted to type {_C_NAMES.get(dtype, dtype.name + '_t')} without"
            f" overflow: {value}"
        )
    return np.array(value, dtype=dtype.np)


_MOST = {
    **dict.fromkeys((dt.float32, dt.complex64), float(np.finfo(np.float32).max)),
    dt.float16: 65504.0,
    dt.bfloat16: float.fromhex("0x1.fep127"),
}
_C_NAMES = {  # as PyTorch's messages have them; int64 is int64_t
    dt.int32: "int",
    dt.float32: "float",
    dt.float64: "double",
    dt.float16: "c10::Half",
    dt.bfloat16: "c10::BFloat16",
    dt.complex64: "c10::complex<float>",
    dt.complex128: "c10::complex<double>",
}


# ---- pointwise ----------------------------------------------------------------------------------


def result_dtypes(op: Any, operands: Any) -> tuple[dt.dtype, dt.dtype]:
    """(dtype to compute in, dtype of the result) of a pointwise operator."""
    promote = op.promote
    if promote == "masked_fill":  # the result has the type of the first operand
        value = operands[2]
        if isinstance(value, Tensor) and value._a.ndim:
            raise RuntimeError(
                "masked_fill only supports a 0-dimensional value tensor, but got tensor with"
                f" {value._a.ndim} dimension(s)."
            )
        d = operands[0].dtype if isinstance(operands[0], Tensor) else dt.of_scalar(operands[0])
        if isinstance(value, Tensor) and value._k.dtype is not d and value._k.device is cpu:
            scalar_array(value._a.item(), d)  # refuses what does not fit, as it does of numbers
        return d, d
    dims = zeros = wrapped = None
    for x in operands[1:] if promote == "where" else operands:
        if isinstance(x, Tensor):
            d = x._k.dtype
            if x._a.ndim:
                dims = d if dims is None or dims is d else dt.promote_types(dims, d)
            else:
                zeros = d if zeros is None or zeros is d else dt.promote_types(zeros, d)
        elif x is not None:
            d = dt.of_scalar(x)
            wrapped = d if wrapped is None else dt.promote_types(wrapped, d)
    common = dt.combine(dims, zeros, wrapped)
    if promote == "default" or promote == "where":
        if op.name in ("sub", "rsub") and common is not dt.bool_:
            _refuse_bools(operands)
        elif op.name == "lerp":
            common = _lerp_type(operands, common)
        elif op.name == "addcdiv":
            _refuse_integer_division(operands)
        elif common.is_complex or common is dt.bool_ and not isinstance(operands[-1], Tensor):
            _refuse_order(op, common)
        return common, common
    if promote == "float":
        if common.category < dt.FLOAT:
            common = dt.get_default_dtype()
        return common, common
    if promote == "bool":
        if common.is_complex:
            _refuse_order(op, common)
        return common, dt.bool_
    if promote == "real":
        return common, common.to_real()
    return promote(op, common)


_ORDERED = {  # what asks for an order → the error of complex numbers, which have none
    **dict.fromkeys(("lt", "le", "gt", "ge", "clamp_min", "clamp_max"), NotImplementedError),
    **dict.fromkeys(("clamp", "_clamp_low", "_clamp_high"), NotImplementedError),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), RuntimeError),
}


def refuse_complex(op: Any) -> None:
    """For operators that PyTorch differentiates for real numbers only."""
    raise RuntimeError(
        f"{op.name} does not support automatic differentiation for outputs with complex dtype."
    )


def refuse_integers(t: Tensor) -> None:
    """For a result that would be recorded, but is of integers."""
    raise RuntimeError(f"Autograd not support dtype: {t._k.dtype.scalar_name}")


def common_type(operands: Any) -> dt.dtype:
    """What the operands promote to, before the operator has its say."""
    dims = zeros = wrapped = None
    for x in operands:
        if not isinstance(x, Tensor):
            if x is not None:
                d = dt.of_scalar(x)
                wrapped = d if wrapped is None else dt.promote_types(wrapped, d)
        elif x._a.ndim:
            dims = x._k.dtype if dims is None else dt.promote_types(dims, x._k.dtype)
        else:
            zeros = x._k.dtype if zeros is None else dt.promote_types(zeros, x._k.dtype)
    return dt.combine(dims, zeros, wrapped)


def _refuse_order(op: Any, dtype: dt.dtype) -> None:
    """Complex numbers have none, and truth values none beside a number."""
    error = _ORDERED.get(op.name)
    if error is not None:
        name = op.name.lstrip("_")
        raise error(f"\"{name}_cpu\" not implemented for '{dtype.scalar_name}'")


def _refuse_integer_division(operands: Any) -> None:
    if all(not isinstance(x, Tensor) or x._k.dtype.category < dt.FLOAT for x in operands[1:]):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv"
            " will perform a true division of tensor1 and tensor2. Convert one of them with"
            " .float()"
        )


def _lerp_type(operands: Any, common: dt.dtype) -> dt.dtype:
    """A number as weight takes self's type, a tensor without dimensions may change it."""
    first, _, weight = operands
    if isinstance(first, Tensor) and not isinstance(weight, Tensor):
        common = first.dtype
    for name, x in zip(("self", "end", "weight"), operands, strict=True):
        scalar = name == "weight" and isinstance(x, Tensor) and x._a.ndim == 0
        if (
            isinstance(x, Tensor)
            and isinstance(first, Tensor)
            and x.dtype is not first.dtype
            and not scalar
        ):
            raise RuntimeError(
                f"lerp: expected dtype {first.dtype} for `{name}` but got dtype {x.dtype}; convert"
                " it with .to()"
            )
    if common.category < dt.FLOAT:
        if isinstance(weight, Tensor):
            return common  # the kernel refuses: what the result cannot be cast to is told before
        raise NotImplementedError(f"\"lerp_cpu\" not implemented for '{common.scalar_name}'")
    if type(weight) is not float or not -65504 <= weight <= 65504:  # these fit every type
        if isinstance(weight, NUMBERS):
            scalar_array(weight, common if common.itemsize > 2 else dt.float32)  # may refuse
    return common


def refuse_numbers(op: Any, operands: Any) -> None:
    """TypeError for a number where the in-place or out= form takes a tensor only."""
    if type(op.numbers) is tuple:
        names = [a.name for a in op.schema.arguments if a.type.base == "Tensor"]
        for name, x in zip(names, operands, strict=True):
            if x is None or isinstance(x, NUMBERS) and name not in op.numbers:
                raise TypeError(
                    f"{op.name}(): argument '{name}' must be Tensor, not {type(x).__name__}"
                )


def _refuse_bools(operands: Any) -> None:
    are = [
        x._k.dtype is dt.bool_ if isinstance(x, Tensor) else isinstance(x, bool) for x in operands
    ]
    if all(are):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or"
            " `logical_xor()` operator instead."
        )
    if any(are):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are"
            " trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )


def plan_mixed(op: Any, plans: dict[Any, Any], a: Tensor, b: Tensor) -> Any:
    """(NumPy dtype to compute in, kind of the result) of a binary ufunc on two contiguous host
    tensors of different kinds, kept in `plans`; False where `elementwise` must decide."""
    ka, kb = a._k, b._k
    found: Any = False
    if ka.fast and kb.fast and ka.dtype is not dt.bool_ and kb.dtype is not dt.bool_:
        compute, result = result_dtypes(op, (a, b))
        ufunc = getattr(op.kernel, "fast_ufunc", op.kernel)
        casts = _takes(ufunc, ka.np, kb.np, compute.np)
        rounds = compute is not dt.float16 or op.name not in EXACT_NUMBERS or b._a.ndim > 0
        every = not (compute.is_complex and getattr(op.kernel, "fast_complex", None))
        if compute is result and casts and rounds and every:
            found = (compute.np, kind(result))
    plans[ka, kb, not a._a.ndim, not b._a.ndim] = found
    return found


def _takes(ufunc: Any, a: np.dtype, b: np.dtype, dtype: np.dtype) -> bool:
    """Whether the ufunc converts to `dtype` by itself, and has it at all."""
    try:
        ufunc(np.empty(0, a), np.empty(0, b), dtype=dtype)
    except TypeError:
        return False
    return True


_RAW = {"where": 0, "masked_fill": 1}  # the operand that is a mask and keeps its type


def check_mask(op: Any, mask: Any) -> None:
    """Masks are boolean tensors: `~mask` of anything else would be another thing than "not"."""
    if not isinstance(mask, Tensor):
        name = "condition" if op.promote == "where" else "mask"
        raise TypeError(f"{op.name}(): argument '{name}' must be Tensor, not {type(mask).__name__}")
    if mask._k.dtype is not dt.bool_:
        what = "where expected condition to be a boolean tensor, but got a tensor with dtype"
        if op.promote == "masked_fill":
            what = "masked_fill_ only supports boolean masks, but got mask with dtype"
        raise RuntimeError(f"{what} {mask._k.dtype.scalar_name}; convert it with .bool()")


exotic_into: list[Any] = []  # torchlab._core.dispatch.exotic puts its function here


def elementwise(op: Any, operands: Any, values: Any, out: Any = None) -> Any:
    """Run a pointwise kernel. Operands are tensors, numbers or None. With `out` (an array of the
    result's shape, any dtype that can hold it) the result is written there and returned as is."""
    if out is None:
        r = _alike(op, operands, values)
        if r is not None:
            return r
    if type(op.promote) is str and op.promote in _RAW:
        check_mask(op, operands[_RAW[op.promote]])
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if not tensors and op.numbers != "all":
        kinds = ", ".join(type(x).__name__ for x in operands)
        raise TypeError(
            f"{op.name}() received an invalid combination of arguments - got ({kinds}), but at"
            " least one of them must be a Tensor"
        )
    dev = cpu
    for t in tensors:
        if t._k.device is not cpu:
            dev = common_device(op, tensors)
            break
    try:
        shape = layout.broadcast_shapes(*[t._a.shape for t in tensors])
    except RuntimeError as e:
        shapes = " and ".join(str(list(t._a.shape)) for t in tensors)
        raise RuntimeError(f"{e} ({op.name}: shapes {shapes} do not broadcast)") from None
    compute, result = result_dtypes(op, operands)
    strides = None
    if not all(t._k.contiguous for t in tensors) or 1 in shape and any(map(odd_ones, tensors)):
        if any(t._exotic for t in tensors):  # dense.add_(sparse); Note [Exotic tensors]
            return exotic_into[0](op, operands, values, out)
        if (
            op.promote == "masked_fill"
            or (op.name == "angle" and compute.is_complex)
            or (op.name == "pow" and not isinstance(operands[0], Tensor))
        ):
            strides = layout.contiguous_strides(shape)
        else:
            mask = operands[0] if op.promote == "where" else None
            ranked = tensors[::-1] if op.name == "rsub" else tensors  # `other` comes first there
            shapes = [t._a.shape for t in ranked]
            steps = [_read_strides(t, t._k.dtype if t is mask else compute) for t in ranked]
            if len(operands) == 2 and len(tensors) == 1 and op.name not in _NUMBER_APART:
                shapes.append(())  # a number is a tensor without dimensions there
                steps.append(())
            strides = layout.ti_output_strides(shape, shapes, steps)
    if dev.type == "meta":
        return _meta(shape, result, dev, strides)
    backend = base.backend(dev)
    xp = backend.xp
    kernel = op.kernel
    ufunc = isinstance(kernel, np.ufunc)
    np_compute = compute.np
    widen = (
        compute.is_floating_point and compute.itemsize <= 2 and not getattr(kernel, "exact", False)
    )
    # Note [Numbers beside 16-bit floats]
    exact = EXACT_NUMBERS.get(op.name, -1) if widen else -1
    if exact >= 0 and isinstance(operands[exact], Tensor):
        if operands[exact]._a.ndim or op.name == "lerp":
            exact = -1
    if widen and values and op.name in _ROUNDED_NUMBERS:
        values = (scalar_array(values[0], compute).item(), *values[1:])
    if widen and (exact >= 0 or not (ufunc and compute is dt.float16)):
        np_compute = np.dtype(np.float32)
    from_ints = op.promote == "float" and compute is dt.float32 and _all_exact(operands)
    if from_ints:  # correctly rounded, as PyTorch's; NumPy's float32 functions are off by one ulp
        np_compute = _DOUBLE
    arrays = []
    raw = _RAW.get(op.promote, -1) if type(op.promote) is str else -1
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            a = x._a
            if from_ints:
                a = a.astype(np.float32)
            if widen and x._k.dtype is not compute and i != raw and i != exact:
                a = a.astype(compute.np)
            if a.dtype != np_compute and i != raw:
                a = a.astype(np_compute)
            if dev is not cpu and x._k.device is cpu:
                a = xp.asarray(a)
        elif x is None:
            a = None
        elif i == exact:
            a = np.array(x.real, np.float32)  # a weight of lerp may be 1 + 0j
        else:
            a = operand_array(x, compute, op)
            if a.dtype != np_compute:
                a = a.astype(np_compute)
        arrays.append(a)
    target = out
    direct = (np_compute == compute.np or result is dt.bool_) and (
        out is None or out.dtype == result.np
    )
    if target is None and direct and (strides is not None or dev is not cpu):
        made = empty(shape, result, dev, strides)
        target = made._a
    elif target is None:
        made = None
    arguments = arrays if ufunc else (xp, *arrays, *values)
    if target is not None and direct:
        r = _run(op, compute, kernel, arguments, {"out": target})
        if out is not None:
            return out
        if r is not target:
            target[...] = r
        return made
    r = _run(op, compute, kernel, arguments, {})
    if out is not None:
        out[...] = r if r.dtype == out.dtype else r.astype(out.dtype)
        return out
    if r.dtype != result.np:
        r = r.astype(result.np)
    if r.shape != shape:
        r = np.broadcast_to(r, shape).copy()
    if strides is not None:
        made = empty(shape, result, dev, strides)
        made._a[...] = r
        return made
    return wrap_on(r, dev, result)


def odd_ones(t: Tensor) -> bool:
    """Whether a dimension of size 1 has another step than row-major order gives it: it tells in
    which order the result's dimensions lie, be the tensor contiguous."""
    return 1 in t._a.shape and strides_of(t) != layout.contiguous_strides(t._a.shape)


# Their kernels take a number as a number.
_NUMBER_APART = frozenset("pow clamp_min clamp_max _clamp_low _clamp_high".split())


def _read_strides(t: Tensor, dtype: dt.dtype) -> Any:
    """The strides in which a kernel meets the operand: those of a copy if it must be converted."""
    if t._k.dtype is dtype:
        return strides_of(t)
    return layout.empty_like_strides(t._a.shape, strides_of(t))


def _run(op: Any, dtype: dt.dtype, kernel: Any, arguments: Any, named: Any) -> Any:
    try:
        return kernel(*arguments, **named)
    except TypeError as error:
        text = str(error)
        if "not supported" in text or "Cannot cast ufunc" in text or "No loop matching" in text:
            raise NotImplementedError(
                f"\"{op.name.lstrip('_')}_cpu\" not implemented for '{dtype.scalar_name}'"
            ) from None
        raise


def _alike(op: Any, operands: Any, values: Any) -> Tensor | None:
    """The common case of `elementwise`: contiguous host tensors of one type and shape, numbers
    beside them. What follows from kinds alone is worked out once; None for anything else."""
    key = []
    shape = None
    dims = 0
    for x in operands:
        c = type(x)
        if c is Tensor or c is Parameter:
            a = x._a
            ndim = a.ndim
            if ndim:
                if shape is None:
                    shape, dims = a.shape, ndim
                    if 1 in shape and odd_ones(x):
                        return None
                elif ndim != dims or a.shape != shape:
                    return None
                key.append(x._k)
            else:
                key.append((x._k, 0))
        else:
            key.append(c)
    key = tuple(key)
    plans = op._cache.get("alike")
    if plans is None:
        plans = op._cache["alike"] = {}
    plan = plans.get(key)
    if plan is None:
        plan = plans[key] = _plan_alike(op, operands)
    if not plan:
        return None
    compute, k = plan
    arrays = [
        x._a
        if isinstance(x, Tensor)
        else None
        if x is None
        else SCALARS.get((x, type(x), compute)) or operand_array(x, compute.dtype, op)
        for x in operands
    ]
    kernel = op.kernel
    arguments = arrays if isinstance(kernel, np.ufunc) else (np, *arrays, *values)
    r = _run(op, compute.dtype, kernel, arguments, {})
    if type(r) is not np.ndarray:
        r = np.asarray(r)
    if r.dtype is not k.np:
        r = r.astype(k.np)
    if r.shape != (shape or ()):
        r = np.broadcast_to(r, shape or ()).copy()
    t = _new(Tensor)
    t._a = r
    t._k = k if r.flags.c_contiguous else k.v
    t._e = t._s = t._v = t._g = None
    return t


def _plan_alike(op: Any, operands: Any) -> Any:
    """(kind to compute in, kind of the result), or False: `elementwise` itself."""
    raw = _RAW.get(op.promote, -1) if type(op.promote) is str else -1
    if raw >= 0:
        check_mask(op, operands[raw])
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if not tensors or not all(t._k.fast for t in tensors):
        return False
    compute, result = result_dtypes(op, operands)
    if compute not in dt.NATIVE or compute is dt.float16:
        return False
    for i, x in enumerate(operands):
        if isinstance(x, Tensor) and i != raw and x._k.dtype is not compute:
            return False
    return kind(compute), kind(result)


# Note [Numbers beside 16-bit floats]
# Arithmetic on 16-bit floats happens in float32. A number (or a tensor without dimensions) that
# stands beside them is rounded to 16 bits first, but not the one by which they are multiplied or
# divided, nor the weight of lerp if it is a number: x * 0.1 is x · 0.1 and x + 0.1 is
# x + 0.10009765625.
EXACT_NUMBERS = {  # the place of the number
    **dict.fromkeys(("mul", "div", "_div_floor", "trunc_divide", "floor_divide"), 1),
    "lerp": 2,
}
_ROUNDED_NUMBERS = frozenset(("add", "sub", "rsub", "pow"))  # alpha and the exponent are, too


_DOUBLE = np.dtype(np.float64)


def _all_exact(operands: Any) -> bool:
    """Whether all operands are integers or bools."""
    for x in operands:
        if isinstance(x, Tensor):
            if x._k.dtype.category >= dt.FLOAT:
                return False
        elif isinstance(x, float):
            return False
    return True


def _meta(shape: Any, dtype: dt.dtype, dev: device, strides: Any = None) -> Tensor:
    return meta_tensor(MetaArray(shape, dtype.np, strides), dtype)


def meta_tensor(a: MetaArray, dtype: dt.dtype) -> Tensor:
    t = _new(Tensor)
    t._a = a
    k = kind(dtype, device("meta"))
    t._k = k if a.flags.c_contiguous else k.v
    t._e = t._s = t._v = t._g = None
    return t


# ---- general kernels ----------------------------------------------------------------------------


def all_tensors(values: Any, optional: bool) -> bool:
    """Whether a list argument holds plain tensors only."""
    if type(values) is not list and type(values) is not tuple:
        return False
    for x in values:
        c = type(x)
        if c is not Tensor and c is not Parameter and not (optional and x is None):
            return False
    return True


def all_direct(values: Any) -> bool:
    for x in values:  # (half the time of `all` with a generator)
        if x is not None and not x._k.direct:
            return False
    return True


def list_arrays(values: Any) -> tuple[Any, bool, Any]:
    """(arrays, whether any tensor may have history, the kind if all have one) of a list of plain
    host tensors, in one pass; (None, True, None) for anything else."""
    if type(values) is not list and type(values) is not tuple:
        return None, True, None
    arrays: list[Any] = []
    history = False
    one: Any = None
    for x in values:
        c = type(x)
        if c is not Tensor and c is not Parameter:
            return None, True, None
        k = x._k
        if k is not one:
            if not k.direct:
                return None, True, None
            one = False if arrays else k
        arrays.append(x._a)
        if x._e is not None or ((s := x._s) is not None and s.stale):
            history = True
    return arrays, history, one


def any_edge(edges: Any) -> bool:
    return edges.count(None) != len(edges)


_HALF = frozenset((dt.float16, dt.bfloat16))


_ONE_DTYPE = frozenset("mm bmm mv dot vdot addmm addmv addbmm baddbmm convolution".split())


def execute(op: Any, args: tuple[Any, ...]) -> Any:
    """Run a general kernel for other devices than the host, or with 16-bit floats."""
    tensors = []
    for x in args:
        if isinstance(x, Tensor):
            tensors.append(x)
        elif type(x) in (list, tuple):
            tensors += [y for y in x if isinstance(y, Tensor)]
    dev = common_device(op, tensors)
    if dev.type == "meta":
        if op.meta is None:
            raise NotImplementedError(
                f"{op.qualname}: there is no meta rule for this operator: it cannot run on the meta"
                " device"
            )
        return _wrap_meta(op.meta(*[x._a if isinstance(x, Tensor) else _arrays(x) for x in args]))
    backend = base.backend(dev)
    half = next((t._k.dtype for t in tensors if t._k.dtype in _HALF), None) if op.half else None
    if half is not None and op.name in _ONE_DTYPE and any(t._k.dtype is not half for t in tensors):
        if op.name in ("bmm", "baddbmm") and any(not t._a.size for t in tensors[-2:]):
            return wrap_on(op.kernel(backend.xp, *[_array(x, False) for x in args]), dev)
        nothing = np.zeros((), np.float32)  # what is wrong with the shapes is told first
        op.kernel(backend.xp, *[
            np.broadcast_to(nothing, x._a.shape) if isinstance(x, Tensor) else x for x in args
        ])  # fmt: skip
        if op.name == "bmm" and args[0]._k.dtype is dt.bool_:
            raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
        kinds = " and ".join(str(t._k.dtype) for t in tensors)  # the kernel sees float32 only
        raise RuntimeError(f"{op.name}: expected all operands to have the same dtype, not {kinds}")
    arrays = [_array(x, half is not None) for x in args]
    kernel = op.kernel if half is None or op.half is True else op.half
    r = kernel(backend.xp, *arrays)
    if type(r) is tuple or type(r) is list:
        return type(r)(_finish(x, half, dev) for x in r)
    return _finish(r, half, dev)


def _arrays(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(y._a if isinstance(y, Tensor) else y for y in x)
    return x


def _widened(a: Any) -> Any:
    """A 16-bit array in float32; an expanded one stays expanded, for kernels that read strides."""
    if type(a) is not np.ndarray or not a.size or 0 not in a.strides:
        return _cast(a, np.dtype(np.float32))
    one = tuple(slice(1) if step == 0 else slice(None) for step in a.strides)
    return np.broadcast_to(a[one].astype(np.float32), a.shape)


def _cast(a: Any, dtype: np.dtype) -> Any:
    """`a` in another dtype, in the same order in memory. NumPy gives dimensions of size 1 any
    strides, but these can tell channels-last tensors from others."""
    r = a.astype(dtype)
    if r.ndim < 4 or 1 not in r.shape or type(r) is not np.ndarray:
        return r
    strides = tuple(s // a.itemsize * r.itemsize for s in a.strides)
    if all(n == 1 or s == t for n, s, t in zip(r.shape, strides, r.strides, strict=True)):
        return np.lib.stride_tricks.as_strided(r, r.shape, strides)
    return r


def _array(x: Any, widen: bool) -> Any:
    if isinstance(x, Tensor):
        return _widened(x._a) if widen and x._k.dtype in _HALF else x._a
    if type(x) in (list, tuple):
        return [_array(y, widen) for y in x]
    return x


def _finish(r: Any, half: dt.dtype | None, dev: device) -> Tensor:
    if half is not None and r.dtype == np.float32:
        r = _cast(r, half.np)
    return wrap_on(r, dev)


def _wrap_meta(r: Any) -> Any:
    if type(r) in (tuple, list):
        return type(r)(_wrap_meta(x) for x in r)
    return meta_tensor(r, dt.from_numpy(r.dtype))


# ---- outputs ------------------------------------------------------------------------------------


def attach_outputs(node: Any, results: Any) -> None:
    """Give the results of a node with several outputs their edges; integers get none,
    nor do outputs whose gradient no formula names (statistics, for instance)."""
    outs = []
    used = node.used
    for i, t in enumerate(results):
        outs.append((t._a.shape, t._k))
        if t._k.differentiable and (used is None or i in used):
            t._e = Out(node, i)
    node._outs = outs
    node.shape = node.k = None
