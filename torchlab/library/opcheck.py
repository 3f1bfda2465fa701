"""`opcheck`: whether an operator keeps to what it declares.

Source: https://docs.pytorch.org/docs/2.13/library.html#torch.library.opcheck
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.compute import meta_tensor
from torchlab._core.dispatch.modes import tensors_in
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import edge_of, storage_of
from torchlab._core.tensor import Tensor, strides_of
from torchlab._ops import OpOverloadPacket
from torchlab.autograd import api
from torchlab.autograd.grad_mode import no_grad
from torchlab.library.custom_op import CustomOpDef


class OpCheckError(Exception):
    """An operator does not do what its declaration says."""


def _each(x: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same value with every tensor changed."""
    if isinstance(x, Tensor):
        return change(x)
    if type(x) in (list, tuple):
        return type(x)(_each(y, change) for y in x)
    return x


def _copy(t: Tensor) -> Tensor:
    with no_grad():
        c = aten.clone(t)
    return c.requires_grad_() if edge_of(t) is not None else c


def _outputs(result: Any) -> list[Tensor]:
    return tensors_in(result if isinstance(result, (list, tuple)) else (result,))


def _schema(op: Any, args: list[Any]) -> None:
    """Inputs not marked as written stay as they were; outputs not marked as views share no
    memory."""
    arguments = op.schema.arguments
    with no_grad():
        args = _each(args, _copy)
        before = [_each(x, lambda t: t._a.copy()) for x in args]
        result = op.core(*args)
    for a, x, old in zip(arguments, args, before, strict=True):
        if not a.write and a.type.base == "Tensor" and x is not None:
            pairs = zip(x, old, strict=True) if type(x) in (list, tuple) else [(x, old)]
            for t, array in pairs:
                if isinstance(t, Tensor) and not np.array_equal(
                    t._a, array, equal_nan=t._k.differentiable
                ):
                    raise OpCheckError(
                        f"test_schema failed: {op} changed its argument '{a.name}', which its "
                        "schema does not mark as "
                        f"written: {op.schema}. Name it in mutates_args."
                    )
    if any(r.alias for r in op.schema.returns):
        return
    inputs = {id(storage_of(t)) for t in tensors_in(args)}
    for o in _outputs(result):
        if id(storage_of(o)) in inputs:
            raise OpCheckError(
                f"test_schema failed: an output of {op} shares memory with an input, but "
                f"{op.schema} says no view"
            )


def _autograd(op: Any, args: list[Any]) -> None:
    """If an input wants a gradient, the outputs have one and backward gives every input its
    shape."""
    args = _each(args, _copy)
    wanted = [t for t in tensors_in(args) if edge_of(t) is not None]
    if not wanted or any(a.write for a in op.schema.arguments):
        return
    owner = getattr(op.kernel, "__self__", None)
    if isinstance(owner, CustomOpDef) and owner._backward is None:
        return  # calling backward says what to register
    outputs = [o for o in _outputs(op.core(*args)) if o._k.differentiable]
    if outputs and all(edge_of(o) is None for o in outputs):
        raise OpCheckError(
            f"test_autograd_registration failed: the outputs of {op} have no grad_fn though an "
            "input requires grad"
        )
    outputs = [o for o in outputs if edge_of(o) is not None]
    if not outputs:
        return
    found = api.grad(outputs, wanted, [aten.ones_like(o) for o in outputs], allow_unused=True)
    for t, g in zip(wanted, found, strict=True):
        if g is not None and tuple(g.shape) != tuple(t.shape):
            raise OpCheckError(
                f"test_autograd_registration failed: backward of {op} gave a gradient of shape "
                f"{list(g.shape)} for an input of "
                f"shape {list(t.shape)}"
            )


def _meta_twin(t: Tensor) -> Tensor:
    return meta_tensor(MetaArray(t._a.shape, t._a.dtype, strides_of(t)), t._k.dtype)


def _fake(op: Any, args: list[Any]) -> None:
    """Shape, strides and dtype that the operator foretells without data are the real ones."""
    with no_grad():
        real = _outputs(op.core(*_each(args, _copy)))
        try:
            fake = _outputs(op.core(*_each(args, _meta_twin)))
        except RuntimeError as error:
            raise OpCheckError(f"test_faketensor failed: {op}: {error}") from error
    if len(real) != len(fake):
        raise OpCheckError(
            f"test_faketensor failed: {op} has {len(real)} outputs, but foretells {len(fake)}"
        )
    for i, (r, f) in enumerate(zip(real, fake, strict=True)):
        for fact, a, b in (("shape", tuple(r.shape), tuple(f.shape)), ("dtype", r.dtype, f.dtype),
                           ("stride", strides_of(r), strides_of(f))):  # fmt: skip
            if a != b and not (fact == "stride" and r._a.size == 0):
                raise OpCheckError(
                    f"test_faketensor failed: output {i} of {op} has {fact} {a}, but the fake one "
                    f"has {b}"
                )


def _compiled(op: Any, args: list[Any]) -> None:
    """Compiled, the operator gives the same results and gradients as without."""
    eager, compiled = _each(args, _copy), _each(args, _copy)
    wanted = _outputs(op.function(*_split(op, eager)[0], **_split(op, eager)[1]))
    positional, named = _split(op, compiled)
    face = sys.modules[
        __name__.partition(".")[0]
    ]  # the compiler lies above: the public face has it
    run = face.compile(lambda a, k: op.function(*a, **k), backend="aot_eager")
    try:
        found = _outputs(run(positional, named))
    except RuntimeError as error:
        raise OpCheckError(f"test_aot_dispatch_dynamic failed: {op}: {error}") from error
    pairs = [*zip(wanted, found, strict=True)]
    if not any(a.write for a in op.schema.arguments):
        pairs += _gradients(op, eager, wanted, compiled, found)
    for r, f in pairs:
        if r is None or f is None or tuple(r.shape) != tuple(f.shape):
            same = r is f
        else:
            same = np.allclose(r.detach()._a, f.detach()._a, rtol=1e-4, atol=1e-5, equal_nan=True)
        if not same:
            raise OpCheckError(
                f"test_aot_dispatch_dynamic failed: {op} gives {f} when compiled, but {r} without"
            )


def _split(op: Any, args: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    positional, named = [], {}
    for a, v in zip(op.schema.arguments, args, strict=True):
        if a.kwarg_only:
            named[a.name] = v
        else:
            positional.append(v)
    return tuple(positional), named


def _gradients(
    op: Any, eager: list[Any], wanted: list[Tensor], compiled: list[Any], found: list[Tensor]
) -> list[tuple[Any, Any]]:
    """Pairs of gradients, without and with the compiler; none if nothing wants one."""
    owner = getattr(op.kernel, "__self__", None)
    if isinstance(owner, CustomOpDef) and owner._backward is None and not owner.implicit:
        return []
    grads = []
    for args, outputs in ((eager, wanted), (compiled, found)):
        leaves = [t for t in tensors_in(args) if edge_of(t) is not None]
        roots = [o for o in outputs if edge_of(o) is not None]
        if not leaves or not roots:
            return []
        ones = [aten.ones_like(o) for o in roots]
        grads.append(api.grad(roots, leaves, ones, allow_unused=True))
    return [*zip(*grads, strict=True)]


_TESTS = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_dynamic": _compiled,
}


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_TESTS),
    raise_exception: bool = True,
) -> dict[str, Any]:
    """Check `op` (what `custom_op` gave, or an overload in `torchlab.ops`) with example arguments.

    Gives {"test_schema": "SUCCESS", ...}; raises OpCheckError at the first failure, or puts the
    error into the dictionary if `raise_exception` is false. ValueError for a test it does not know.
    """
    if isinstance(op, OpOverloadPacket):
        op = next(getattr(op, name) for name in op.overloads())
    declaration = op.op if isinstance(op, (CustomOpDef, OpOverload)) else op
    names = (test_utils,) if isinstance(test_utils, str) else test_utils
    unknown = [n for n in names if n not in _TESTS]
    if unknown:
        raise ValueError(f"opcheck: unknown test_utils {unknown}; there are {list(_TESTS)}")
    values = _by_position(declaration, args, kwargs or {})
    results: dict[str, Any] = {}
    for n in names:
        try:
            _TESTS[n](declaration, values)
            results[n] = "SUCCESS"
        except OpCheckError as error:
            if raise_exception:
                raise
            results[n] = error
    return results


def _by_position(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    values = list(args)
    for a in op.schema.arguments[len(values) :]:
        if a.name not in kwargs and not a.has_default:
            raise TypeError(f"{op.name}() missing required argument '{a.name}'")
        values.append(kwargs.get(a.name, a.default))
    return values
