"""`grad`, `grad_and_value` and `vjp`: reverse mode on the ordinary tape.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.grad.html,
https://docs.pytorch.org/docs/2.13/generated/torch.func.vjp.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torchlab import autograd
from torchlab._core import pytree
from torchlab._core.dispatch import levels
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import NOGRAD, TLS, edge_of
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import enable_grad
from torchlab.func import tracking
from torchlab.func.arguments import (
    ArgNums,
    check_aux,
    check_outputs,
    checked,
    chosen,
    replaced,
    with_aux,
)


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grads: Sequence[Any] | None, create: bool
) -> list[Tensor]:
    """Gradients of outputs, some of which may not depend on the inputs; zeros where none does."""
    level = max((x._level for x in inputs), default=0)  # type: ignore[attr-defined]
    given = [None] * len(outputs) if grads is None else list(grads)
    pairs = [
        (y, g)
        for y, g in zip(outputs, given, strict=True)
        if y._level == level and edge_of(y) is not None  # type: ignore[attr-defined]
    ]
    found: Sequence[Any] = [None] * len(inputs)
    if pairs and inputs:
        found = autograd.grad(
            [y for y, _ in pairs], inputs, [g for _, g in pairs], retain_graph=True,
            create_graph=create, allow_unused=True,
        )  # fmt: skip
    return [aten.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def recording() -> bool:
    """Whether the tape is on."""
    return not NOGRAD or TLS.grad


def grad_and_value(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that gives (gradient, value) of `func`, which returns a scalar tensor.

    The gradient is taken with respect to the positional arguments `argnums` (one, or a tuple of
    them), which are tensors or trees of tensors, and has their structure. With `has_aux`, `func`
    returns (value, aux) and the function (gradient, (value, aux)). RuntimeError if the value is no
    scalar tensor.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        keep = recording()
        with enable_grad():
            where = checked(argnums, len(args))
            inner = tracking.stand_ins(chosen(args, where))
            flat, spec = pytree.tree_flatten(inner)
            output = tracking.run(func, *replaced(args, where, inner), **kwargs)
            aux = None
            if has_aux:
                output, aux = with_aux(output, "grad_and_value(f)(*args)")
                check_aux(aux)
            _check_scalar(output)
            create = bool(levels.LEVELS.running) or tracking.wanted_outside((output,), flat)
            found = gradients([output], flat, None, create)
        tracking.ended(flat)
        grads = spec.unflatten(tracking.results(found, keep))
        value = tracking.result(output, keep)
        return grads, ((value, tracking.results(aux, keep)) if has_aux else value)

    return wrapper


def _check_scalar(output: Any) -> None:
    what = "grad_and_value(f)(*args): Expected f(*args) to return a"
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{what} tensor, got {type(output)}")
    if output.ndim:
        raise RuntimeError(
            f"{what} scalar tensor, got tensor with {output.ndim} dims, of shape"
            f" {list(output.shape)}. Maybe you forgot to reduce your output?"
        )


def grad(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, which returns a scalar tensor; with `has_aux`,
    (gradient, aux). See `grad_and_value`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(outputs of `func(*primals)`, vjp_fn), with `has_aux` (outputs, vjp_fn, aux).

    `vjp_fn(cotangents)` takes a tree like the outputs and gives a tuple of trees like the primals:
    the product of the cotangents with the Jacobian.
    """
    keep = recording()
    with enable_grad():
        inner = tracking.stand_ins(primals)
        flat, spec = pytree.tree_flatten(inner)
        output = tracking.run(func, *inner)
        aux = None
        if has_aux:
            output, aux = with_aux(output, "vjp(f, *primals)")
        outputs, out_spec = pytree.tree_flatten(output)
        check_outputs(outputs, "vjp(f, *primals)", output)
        for y in outputs:
            if not (y.is_floating_point() or y.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got"
                    f" Tensor with dtype {y.dtype}"
                )
    tracking.ended(flat)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = pytree.tree_flatten(cotangents)
        if given_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of"
                f" outputs to the function. cotangents: {given_spec}, primal output: {out_spec}"
            )
        record = recording() if create_graph is None else create_graph
        with enable_grad():
            found = gradients(outputs, flat, given, True)
        return spec.unflatten(tracking.results(found, record))

    seen = tracking.results(output, keep)
    return (seen, vjp_fn, tracking.results(aux, keep)) if has_aux else (seen, vjp_fn)


__all__ = ["grad", "grad_and_value", "gradients", "recording", "vjp"]
