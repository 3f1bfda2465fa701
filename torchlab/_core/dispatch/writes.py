"""Writing into existing tensors: the checks before, the bookkeeping after.

A refused write has changed nothing: everything that can refuse is asked before the kernel runs.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends import base
from torchlab._core.dispatch import modes, resizing
from torchlab._core.dispatch.compute import (
    common_type,
    elementwise,
    empty,
    execute,
    refuse_numbers,
    result_dtypes,
    wrap,
)
from torchlab._core.dispatch.registry import aten
from torchlab._core.memory.storage import Storage, origin_of
from torchlab._core.refusals import NORMAL, forbidden_write
from torchlab._core.settings import warn_user
from torchlab._core.structures import with_out
from torchlab._core.tape import (
    NOGRAD,
    TLS,
    AccumulateGrad,
    CopySlices,
    NotImplementedNode,
    ViewMeta,
    base_of,
    edge_of,
    geometry,
    maker_of,
    move_retained,
    note_write,
    wants_grad,
    way_of,
)
from torchlab._core.tensor import Tensor, strides_of

_new = object.__new__


def prepare_write(op: Any, t: Any, others: Any) -> bool:
    """Everything about the tape that forbids writing to `t`. Tells whether the tape records."""
    if not isinstance(t, Tensor):
        modes.check_types(op, (t, *others))
    grad = not NOGRAD or TLS.grad
    if t._k.inference and not TLS.inference:
        raise RuntimeError(
            f"{op.name}_: Inplace update to inference tensor outside InferenceMode is not allowed."
            " You can make a clone to get a normal tensor before doing inplace update."
        )
    if grad and not _without_derivative(op):
        check_tape(t, others)
    return grad


def _without_derivative(op: Any) -> bool:
    """`x.logical_and_(y)`: nothing of the tape speaks against it."""
    return getattr(op, "promote", "") == "bool" and not op.write_vjp


def check_tape(t: Tensor, others: Any) -> None:
    """Leaves, views of leaves, and views made where writing cannot be recorded."""
    v = t._v
    if v is None:
        if type(t._e) is AccumulateGrad:
            raise RuntimeError(_leaf_text)
        return
    wants = wants_grad(t)
    if not wants and not any(isinstance(x, Tensor) and wants_grad(x) for x in others):
        return
    if type(v) is ViewMeta and v[1] != NORMAL:
        raise RuntimeError(forbidden_write(maker_of(t), v[1], False))
    if wants:
        # (A leaf may be a view itself: then it wants a gradient and the base of all does not.)
        e = base_of(t)._e
        if e is None or type(e) is AccumulateGrad:
            raise RuntimeError("a view of " + _leaf_text)
        if type(edge_of(t)) is AccumulateGrad:
            raise RuntimeError(_leaf_text)


_leaf_text = (
    "a leaf Variable that requires grad is being used in an in-place operation. Write under"
    " torch.no_grad(), or to a clone."
)


# PyTorch lets these write through a tensor of which several elements share a cell.
_ON_EXPANDED = frozenset(("masked_fill", "index_put", "index_fill"))
_MASKS = frozenset((dt.bool_, dt.uint8))


def check_memory(op: Any, t: Tensor, inputs: Any, *, exact_ok: bool = True) -> None:
    """Refuse targets whose elements share cells, and inputs that partly overlap the target."""
    if t._v is None and t._s is None and t._k.contiguous or t._k.device.type == "meta":
        return
    if not t._k.contiguous and layout.has_internal_overlap(t._a.shape, strides_of(t)) == "yes":
        if op.name == "threshold" or (op.name == "nan_to_num" and t._k.dtype.category < dt.FLOAT):
            return  # twice is once; integers stay as they are
        if op.name in _ON_EXPANDED:
            warn_user(
                f"Use of {op.name}_ on expanded tensors is deprecated. Please clone() the tensor"
                " before performing this operation.",
            )
            return
        raise RuntimeError(
            f"{op.name}: unsupported operation: more than one element of the written-to tensor"
            " refers to a single memory location. Please clone() the tensor before performing the"
            " operation."
        )
    for x in inputs:
        if isinstance(x, Tensor) and x is not t and x._a.size and same_memory(x._s, t._s):
            plain = not (t._exotic or x._exotic) or op.name == "copy" and _has_cells(t, x)
            if plain and partly_overlaps(t, x, exact_ok):
                raise RuntimeError(
                    f"{op.name}: unsupported operation: some elements of the input tensor and the"
                    " written-to tensor refer to a single memory location. Please clone() the"
                    " tensor before performing the operation."
                )


def _has_cells(*tensors: Tensor) -> bool:
    """Whether all lie in memory, be it with a pending conjugation; Note [Pending tensors] in
    ops._bits."""
    return all(not t._exotic or hasattr(t._a, "memory") for t in tensors)


def same_memory(a: Storage | None, b: Storage | None) -> bool:
    return a is not None and (a is b or b is not None and origin_of(a) is origin_of(b))


def partly_overlaps(t: Tensor, x: Tensor, exact_ok: bool) -> bool:
    """Whether two tensors in one storage share some cells, or all of them in another order. Types
    and shapes do not count, as in PyTorch: the whole memory read as another type is the same."""
    shape, strides, offset = geometry(t)
    other_shape, other_strides, other_offset = geometry(x)
    if not (t._k.contiguous and x._k.contiguous) and not _dense_pair(
        shape, strides, other_shape, other_strides
    ):
        return False  # as PyTorch: too hard to tell is allowed
    size, other_size = t._k.itemsize, x._k.itemsize
    low, high = offset * size, (offset + t._a.size) * size
    other_low, other_high = other_offset * other_size, (other_offset + x._a.size) * other_size
    if low == other_low and high == other_high:
        return strides != other_strides or not exact_ok
    return low < other_high and other_low < high


def _dense_pair(shape: Any, strides: Any, other_shape: Any, other_strides: Any) -> bool:
    dense = layout.is_non_overlapping_and_dense
    return dense(shape, strides) and dense(other_shape, other_strides)


def check_elementwise_into(op: Any, t: Tensor, operands: Any) -> None:
    refuse_numbers(op, operands)
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if op.name in _CLAMPS and t._k.dtype.is_complex:
        result_dtypes(op, operands)  # refuses
    check_memory(op, t, tensors[1:2] if op.name in _READS_FIRST else tensors)
    shape = layout.broadcast_shapes(*[x._a.shape for x in tensors])
    if shape != t._a.shape:
        raise RuntimeError(
            f"{op.name}_: output with shape {list(t._a.shape)} doesn't match the broadcast shape"
            f" {list(shape)}"
        )
    check_cast(op, _result_into(op, operands, t._k.dtype), t._k.dtype)


_CLAMPS = ("clamp", "_clamp_low", "_clamp_high")


def _result_into(op: Any, operands: Any, target: dt.dtype) -> dt.dtype:
    """The type of the result; that it does not fit is told before that there is no kernel for
    it."""
    try:
        return result_dtypes(op, operands)[1]
    except NotImplementedError:
        x = operands[0]
        if op.name not in _CLAMPS:  # which look at the type before anything else
            layout.broadcast_shapes(*[t._a.shape for t in operands if isinstance(t, Tensor)])
        by_tensor = op.name == "lerp" and isinstance(w := operands[2], Tensor) and w._a.ndim
        if (by_tensor or op.name == "bitwise_not") and target is not x.dtype:
            raise RuntimeError(f"Found dtype {target} but expected {x.dtype}") from None
        if op.name == "lerp":
            check_cast(op, x.dtype, target)
            raise
        if op.name in ("sign", *_CLAMPS) and isinstance(x, Tensor) and x._k.dtype.is_complex:
            raise
        by_number = op.name.startswith("clamp") and not isinstance(operands[1], Tensor)
        if op.promote != "bool" and not by_number:
            check_cast(op, common_type(operands), target)
        raise


def check_cast(op: Any, result: dt.dtype, target: dt.dtype) -> None:
    if not dt.can_cast(result, target):
        raise RuntimeError(
            f"{op.name.lstrip('_')}: result type {result.scalar_name} can't be cast to the desired"
            f" output type {target.scalar_name}"
        )


def elementwise_into(op: Any, t: Tensor, operands: Any, values: Any) -> None:
    if t._k.device.type == "meta":
        return
    elementwise(op, operands, values, out=t._a)


def check_general_into(op: Any, t: Tensor, operands: Any) -> None:
    if op.name == "index_put" and _fills_mask(t, *operands[1:]):
        check_memory(op, t, operands[1])
    elif op.name in _APART:
        check_memory(op, t, ())
        for x in modes.tensors_in(operands[1:]):
            if x is t or x._s is not None and x._s is t._s and x._a.size:
                check_apart(op, t, (x,))
    else:
        check_memory(op, t, () if op.name in _READS_FIRST else operands)


# In place these take nothing that shares cells with the target, be it all of them.
_APART = frozenset((
    "index_put", "index_copy", "index_add", "index_reduce", "put", "scatter", "scatter_add",
    "scatter_reduce",
))  # fmt: skip
# These have read the rest before they write.
_READS_FIRST = frozenset(("masked_fill", "index_fill", "masked_scatter", "addmv"))


def _fills_mask(t: Tensor, indices: Any, value: Any) -> bool:
    """Whether `t[mask] = one value` is meant, which PyTorch takes for masked_fill."""
    given = [x for x in indices if x is not None]
    return len(given) == 1 and given[0]._k.dtype in _MASKS and value._a.size == 1


def general_into(op: Any, t: Tensor, operands: Any, values: Any) -> None:
    """Compute anew, then copy: for kernels that are not element by element."""
    for x in operands:
        if isinstance(x, Tensor) and x._exotic:  # Note [Exotic tensors]
            return exotic_general[0](op, t, operands, values)
    if op.name in _TYPED_BY_OUT:  # x.cumsum_() adds in x's type
        if values[-1] not in (None, t._k.dtype):
            raise RuntimeError(
                f"{op.name}_: Bad in-place call: input tensor dtype {t.dtype} and output tensor"
                f" dtype {values[-1]} should match"
            )
        values = (*values[:-1], t._k.dtype)
    args, tensors, rest = [], iter(operands), iter(values)
    for a in op.schema.arguments:
        args.append(next(tensors) if a.type.base == "Tensor" else next(rest))
    into = getattr(op.kernel, "into", None)  # a kernel that can write into the target itself
    if into is not None and t._k.device.type != "meta":
        into(base.backend(t._k.device).xp, t._a, *[array_of(x) for x in args[1:]])
        return
    r = execute(op, tuple(args))
    if r._a.shape != t._a.shape and "grows" in op.tags:
        check_cast(op, r._k.dtype, t._k.dtype)
        shape = r._a.shape
        resizing.resize(t, shape, layout.contiguous_strides(shape), op.name + "_")
    if r._a.shape != t._a.shape:
        raise RuntimeError(
            f"{op.name}_: output with shape {list(t._a.shape)} doesn't match the result's shape"
            f" {list(r._a.shape)}"
        )
    check_cast(op, r._k.dtype, t._k.dtype)
    if t._k.device.type != "meta":
        t._a[...] = r._a


def array_of(x: Any) -> Any:
    """A tensor's array, in lists too; other values as they are."""
    if isinstance(x, Tensor):
        return x._a
    return [array_of(y) for y in x] if type(x) in (list, tuple) else x


def saved_original(t: Tensor) -> Tensor:
    """A copy of the tensor's value and edge before it is overwritten."""
    if t._level:  # Note [Levels]
        r: Any = t.again("clone", None)
        r._e = edge_of(t)
        return r  # type: ignore[no-any-return]
    c = wrap(t._a.copy()) if t._k.plain else empty(t._a.shape, t._k.dtype, t._k.device)
    if not t._k.plain:
        c._a[...] = t._a[...]
    c._e = edge_of(t)
    return c


def wrote(t: Tensor) -> None:
    """Count the write. A tensor without a storage has no alias and is not saved: version 0 → 1."""
    s = t._s
    if s is None:
        s = t._s = Storage(t._a)
        s.version = 1
    elif s.saved == s.version:
        note_write(s)
    else:
        s.version += 1


def rebase_history(t: Tensor, node: Any) -> None:
    """Make `node` the history of what was written: of the tensor, or through CopySlices of its
    base."""
    s = t._s
    v = t._v
    if v is None:
        if s is not None:
            s.stale = True
        move_retained(t, node)
        t._e = node
        return
    b = base_of(t)
    if t._exotic or b._exotic:  # Note [Pending tensors] in ops._bits
        node = exotic_through[0](t, node)
    c = CopySlices()
    c.next = (edge_of(b), *node.next[1:])
    c.fn, c.places = node, node.places
    c.view = geometry(t)
    c.base = (b._a.shape, geometry(b), b._k)
    c.shape = b._a.shape
    c.k = b._k
    move_retained(b, c)
    b._e = c
    s.stale = True
    t._v = (b, NORMAL, -1, way_of(t))  # its edge is made anew, from the base's
    edge_of(t)


# ---- out= ---------------------------------------------------------------------------------------


# Note [Histories of out=]
# What PyTorch does where an operand of a call with `out=` wants gradients hangs on how the operator
# is built. Most refuse. Where autograd does not know the form with `out=` (tag "out_unrecorded"; of
# operators without a derivative, too) the result is written, and the history of `out` is a node
# whose backward refuses. Where that form computes the result and copies it (tag "out_copied") the
# copy is recorded like any other. Operators declared not to be differentiable (tag "constant")
# leave the history of `out` as it is.


def prepare_out(op: Any, out: Any, inputs: Any) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not NOGRAD or TLS.grad:
        concerned: tuple[Any, ...] = ()
        if "constant" in op.tags or "out_copied" in op.tags:
            pass
        elif not _never_recorded(op):
            concerned = (*inputs, out)
        elif "out_unrecorded" in op.tags or op.family in ELEMENTWISE and op.promote != "bool":
            check_unrecorded_out(op, out, inputs)
        if any(isinstance(x, Tensor) and edge_of(x) is not None for x in concerned):
            raise RuntimeError(
                f"{op.name}(): functions with out=... arguments don't support automatic"
                " differentiation, but one of the arguments requires grad."
            )


def check_unrecorded_out(op: Any, out: Tensor, inputs: Any) -> None:
    """What forbids to write to `out` where the write is recorded as one without derivative."""
    try:
        check_tape(out, inputs)
    except RuntimeError:  # PyTorch's autograd knows these operators by their full names
        raise RuntimeError(
            f"aten::{op.name}(): functions with out=... arguments don't support automatic"
            " differentiation, but one of the arguments requires grad. Give out.detach()."
        ) from None


ELEMENTWISE = ("unary", "binary", "pointwise")


def _never_recorded(op: Any) -> bool:
    """Whether nobody declared a derivative: such an operator may read anything with `out=`."""
    if "out_unrecorded" in op.tags:
        return True
    vjp = getattr(op, "vjp", op)
    if not vjp:
        return op.family != "composite"
    return vjp is not op and all(str(f).startswith("no_derivative_of(") for f in vjp.values())


def resize_out(op: Any, out: Tensor, shape: Any, strides: Any = None) -> None:
    """Give `out` the result's shape; PyTorch warns if elements would be lost. `strides` are those
    that an `out` of another shape gets, row-major if not given."""
    if out._a.shape == tuple(shape):
        return
    if out._a.size:
        warn_user(
            "An output with one or more elements was resized since it had shape"
            f" {list(out._a.shape)}, which does not match the required output shape {list(shape)}."
            " This behavior is deprecated, and in a future PyTorch release outputs will not be"
            " resized unless they have zero elements.",
        )
    resizing.resize(out, tuple(shape), strides or layout.contiguous_strides(shape), op.name)


exotic_through: list[Any] = []  # torchlab._core.ops._bits puts its function here
exotic_general: list[Any] = []  # torchlab._core.dispatch.exotic puts its functions here
# The result of these goes into an `out` of its very type only.
_UNCONVERTED = frozenset(
    "abs neg bitwise_not floor ceil trunc round frac sign sgn conj_physical _conj_physical"
    " nan_to_num where clamp clamp_min clamp_max _clamp_low _clamp_high"
    " hardshrink softshrink softplus".split()
)
_TRUTHS = frozenset(("signbit", "isposinf", "isneginf"))
exotic_out: list[Any] = []
exotic_delivered: list[Any] = []


def elementwise_out(op: Any, operands: Any, values: Any, out: Any) -> Any:
    if "out_copied" in op.tags:
        return delivered(op, op.core, (*operands, *values), {}, out)
    tensors = [x for x in operands if isinstance(x, Tensor)]
    refuse_numbers(op, operands)
    if not tensors:  # torch.add(2, 3, out=x)
        return delivered(op, lambda: elementwise(op, operands, values), (), {}, out)
    prepare_out(op, out, tensors)
    if out._exotic:  # Note [Exotic tensors]
        return exotic_out[0](op, (*operands, *values), out)
    result = _result_into(op, operands, out._k.dtype)
    if op.name == "lerp":
        weight = operands[2]
        exact = isinstance(weight, Tensor) and weight._a.ndim > 0
    else:
        exact = op.name in _UNCONVERTED
        if "clamp" in op.name and isinstance(operands[1], Tensor):
            exact = False
    if tensors[0]._k.dtype.is_complex:  # these look at that first
        if op.name == "abs":
            exact = False
        elif op.name in ("ceil", "floor", "trunc", "signbit"):
            raise NotImplementedError(f"{op.name} is not supported for complex inputs")
    if exact and result is not out._k.dtype:
        raise RuntimeError(f"{op.name}: Found dtype {out.dtype} of out but expected {result}")
    if op.name in _TRUTHS and out._k.dtype is not dt.bool_:
        raise RuntimeError(f"{op.name} does not support non-boolean outputs.")
    check_cast(op, result, out._k.dtype)
    shape = layout.broadcast_shapes(*[x._a.shape for x in tensors])
    check_memory(op, out, tensors)
    if shape == out._a.shape:
        elementwise_into(op, out, operands, values)
    else:
        if any(x is out for x in tensors):
            raise RuntimeError(
                f"{op.name}: output with shape {list(out._a.shape)} doesn't match the broadcast"
                f" shape {list(shape)}, and it cannot be resized: it is an input too"
            )
        r = elementwise(op, operands, values)  # first: a kernel that refuses has changed nothing
        resize_out(op, out, shape, strides_of(r))
        if out._k.device.type != "meta":
            out._a[...] = r._a
    wrote(out)
    if op.promote != "bool" and _never_recorded(op) and "constant" not in op.tags:
        leave_unrecorded(op, out, tensors)
    return out


def leave_unrecorded(op: Any, out: Tensor, inputs: Any) -> None:
    """Let the history of a written `out` say that the operator has no derivative, if there is
    anything to say."""
    if out._k.differentiable and (not NOGRAD or TLS.grad):
        edges = tuple(edge_of(x) for x in (*inputs, out))
        if any(e is not None for e in edges):
            rebase_history(out, NotImplementedNode(op.name, out, edges))


_TYPED_BY_OUT = frozenset(("sum", "nansum", "prod", "cumsum", "cumprod"))


def general_out(op: Any, args: Any, out: Any) -> Any:
    """out= of an operator that computes first: the results are copied. Where the call says no
    dtype, the one of `out` is meant."""
    given = isinstance(out, Tensor) and len(args) == len(op.schema.arguments)
    if given and op.name in _TYPED_BY_OUT:
        if args[-1] is None:
            args = (*args[:-1], out._k.dtype)
        elif args[-1] is not out._k.dtype:
            raise RuntimeError(
                f"{op.name}: Expected out tensor to have dtype {args[-1]}, but got {out.dtype}"
            )
    if given and op.name == "mean":
        if args[-1] not in (None, out._k.dtype):
            raise RuntimeError(
                f"mean: Expected out tensor to have dtype {args[-1]}, but got {out.dtype} instead"
            )
        if args[0]._k.differentiable and out._k.differentiable:
            args = (*args[:-1], out._k.dtype)
    if given and op.name == "logsumexp":
        return delivered(op, lambda *a: aten._logsumexp_in(*a, out._k.dtype), args, {}, out)
    return delivered(op, op.core, args, {}, out)


def face_out(face: Any, args: Any, named: Any, out: Any) -> Any:
    """out= of a face: what its body makes is copied."""
    return delivered(face, face.body, args, named, out)


def check_apart(op: Any, out: Tensor, inputs: Any) -> None:
    """Refuse an `out` that is, or overlaps, an input, whatever its shape (tag `out_apart`)."""
    check_memory(op, out, inputs, exact_ok=False)
    if any(x is out for x in inputs):
        raise RuntimeError(
            f"{op.name}: unsupported operation: some elements of the input tensor and the"
            " written-to tensor refer to a single memory location. Please clone() the tensor"
            " before performing the operation."
        )


def copy_out(op: Any, out: Tensor, r: Tensor, inputs: Any) -> Tensor:
    """Copy a result into `out`, recorded like any copy; `out` gets its shape first."""
    if r._a.shape != out._a.shape and (not NOGRAD or TLS.grad):
        if op.name in _RESIZED_FIRST and edge_of(out) is not None:
            raise RuntimeError("cannot resize variables that require grad")
        check_tape(out, inputs)  # what refuses the copy refuses the new shape
    resize_out(op, out, r._a.shape)
    return aten.copy_(out, r)  # type: ignore[no-any-return]


# Among those that copy (tag "out_copied") these resize `out` as `resize_` does.
_RESIZED_FIRST = frozenset(("inner", "tensordot"))


def delivered(op: Any, body: Any, args: Any, named: Any, out: Any) -> Any:
    inputs = modes.tensors_in((*args, *named.values()))
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    tags = op.tags
    copied = "out_copied" in tags  # Note [Histories of out=]
    for o in outs:
        prepare_out(op, o, inputs)
        if "out_apart" in tags:
            check_apart(op, o, inputs)
        if "out_type_first" in tags and o._k.dtype is not inputs[0].dtype:
            if op.name.startswith("index_"):  # but the dimension is looked at before
                layout.wrap_dim(args[1], inputs[0]._a.ndim)
            raise RuntimeError(
                f"{op.name}(): Expected out tensor to have dtype {inputs[0].dtype}, but got"
                f" {o.dtype}"
            )
    if TLS.autocast is not None:  # with out= it has no say
        body = TLS.autocast.off(body)
    try:
        if copied:
            results = body(*args, **named)
        else:
            results = body(*map(unrecorded, args), **{k: unrecorded(x) for k, x in named.items()})
    except NotImplementedError:  # that `out` does not fit is told before
        if "out_same_dtype" in tags and any(o._k.dtype is not inputs[0]._k.dtype for o in outs):
            raise RuntimeError(
                f"{op.name}: Expected out tensor to have dtype {inputs[0].dtype}, but got"
                f" {outs[0].dtype} instead"
            ) from None
        raise
    made = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    if len(outs) != len(made):
        raise TypeError(
            f"{op.name}(): argument 'out' must be {len(made)} tensor(s), but got {len(outs)}"
        )
    for o, r in zip(outs, made, strict=True):
        if o._exotic or r._exotic:
            return exotic_delivered[0](op, outs, made)
        check_cast(op, r._k.dtype, o._k.dtype)
        if "out_same_dtype" in tags and r._k.dtype is not o._k.dtype:
            raise RuntimeError(
                f"{op.name}: Expected out tensor to have dtype {r.dtype}, but got {o.dtype} instead"
            )
        if r._k.device is not o._k.device:
            raise RuntimeError(
                f"{op.name}: expected out tensor on {r.device}, but it is on {o.device}"
            )
    for o, r in zip(outs, made, strict=True):
        if o._level or r._level:  # Note [Levels]
            o.copy_(r)
            continue
        if copied:
            copy_out(op, o, r, inputs)
            continue
        if r._a.shape == o._a.shape:
            check_memory(op, o, inputs)
        keeps = "lapack" in tags  # column-major results stay so in a new `out`
        resize_out(op, o, r._a.shape, strides_of(r) if keeps else None)
        if o._k.device.type != "meta":
            o._a[...] = r._a
        wrote(o)
        if "out_unrecorded" in tags:
            leave_unrecorded(op, o, inputs)
    if isinstance(results, tuple):
        return with_out(type(results))(*outs) if hasattr(results, "_fields") else outs
    return outs if isinstance(results, list) else out


def unrecorded(x: Any) -> Any:
    if isinstance(x, Tensor) and x._e is not None:
        r = _new(type(x) if x._exotic else Tensor)
        r._a, r._k, r._s, r._v = x._a, x._k, x._s, x._v
        r._e = r._g = None
        return r
    if type(x) in (list, tuple):
        return type(x)(map(unrecorded, x))
    return x


def slow_write(op: Any) -> bool:
    """Whether the thread's modes concern a write."""
    return bool(TLS.dispatch_modes or modes.events.op_call.listeners)


def slow_inplace(op: Any, call: Any, args: Any, inner: Any = None) -> Any:
    """A write that modes or listeners are told of. `call` is what they get; `inner` does the work
    where `call` itself would come here again."""
    if modes.dispatched():
        return modes.python_write[0](op, args)
    if TLS.dispatch_modes:
        mode = TLS.dispatch_modes.pop()
        try:
            return mode.__torch_dispatch__(call, (), args, {})
        finally:
            TLS.dispatch_modes.append(mode)
    if modes.dispatch_handlers[0](args):
        return modes.python_write[0](op, args)
    result = (inner or call)(*args)
    if modes.events.op_call.listeners:
        modes.events.op_call.emit(op=op, args=args, result=result)
    return result


def odd_inplace(op: Any, call: Any, args: Any) -> Any:
    """A write with an instance of a subclass among the tensors."""
    if modes.overriding(args):
        handlers = [x for x in modes.overriding(args) if not x._exotic]
        if handlers:
            return modes.ask_functions(op.inplace, handlers, *modes.as_written(op, args))
    if modes.dispatch_handlers[0](args):
        return modes.python_write[0](op, args)
    return call(*args)
