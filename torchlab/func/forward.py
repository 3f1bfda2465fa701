"""`jvp` and `linearize`: forward mode on dual tensors.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.jvp.html,
https://docs.pytorch.org/docs/2.13/generated/torch.func.linearize.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab import autograd
from torchlab._core import pytree
from torchlab._core.dispatch import duals
from torchlab._core.dispatch.duals import Dual
from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import enable_grad
from torchlab.func import tracking
from torchlab.func.arguments import check_outputs, with_aux
from torchlab.func.reverse import recording


def _check_tensors(flat: list[Any], what: str) -> None:
    if not flat:
        raise RuntimeError(f"jvp(func, primals, tangents): Expected {what} to be non-empty")
    for x in flat:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"jvp(func, primals, tangents): Expected {what} to contain only tensors, got"
                f" {type(x)}"
            )


def _check_pair(x: Tensor, t: Tensor) -> None:
    for name, v in (("primal", x), ("tangent", t)):
        if not (v.is_floating_point() or v.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {v.dtype}")
    if x.shape != t.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original"
            f" Tensor, this is not supported. Tensor is of size {list(x.shape)} while the given"
            f" forward gradient is of size {list(t.shape)}."
        )


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """(outputs of `func(*primals)`, their derivatives along the tangents), with `has_aux` also aux.

    primals, tangents: tuples of the same structure and shapes. An output that does not depend on
    the primals has a zero derivative; with `strict` that is a RuntimeError.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = pytree.tree_flatten(primals)
    directions, other = pytree.tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            "jvp(func, primals, tangents): Expected primals and tangents to have the same python"
            f" structure. For example, if primals is a tuple of 3 tensors, tangents also must be."
            f" Got primals with structure {spec} and tangents with structure {other}"
        )
    _check_tensors(flat, "primals")
    _check_tensors(directions, "tangents")
    for x, t in zip(flat, directions, strict=True):
        _check_pair(x, t)
    keep = recording()
    level = LEVELS.enter(Dual)
    others = LEVELS.duals.pop(level, None)  # of a transform of this number that is handed over
    try:
        pairs = zip(flat, directions, strict=True)
        output = func(*spec.unflatten(duals.dual(aten.alias(x), t, level) for x, t in pairs))
        aux = None
        if has_aux:
            output, aux = with_aux(output, "jvp(func, primals, tangents)")
        outputs, out_spec = pytree.tree_flatten(output)
        check_outputs(outputs, "jvp(func, primals, tangents)", output)
        values = [_unwrapped(y, level) for y in outputs]
        made = [_tangent(y, level, strict) for y in outputs]
        aux = pytree.tree_map(lambda y: _unwrapped(y, level), aux)
    finally:
        try:
            duals.end(level)
        finally:
            LEVELS.leave()
            if others is not None:
                LEVELS.duals[level] = others
    results = tuple(tracking.results(out_spec.unflatten(part), keep) for part in (values, made))
    return (*results, tracking.results(aux, keep)) if has_aux else results


def _unwrapped(x: Any, level: int) -> Any:
    return duals.primal_of(x, level) if isinstance(x, Tensor) else x


def _tangent(y: Tensor, level: int, strict: bool) -> Tensor:
    found = duals.tangent_of(y, level)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs."
            " This is not allowed with strict=True."
        )
    return aten.zeros_like(y)  # type: ignore[no-any-return]


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(outputs of `func(*primals)`, jvp_fn): `jvp_fn(*tangents)` is the derivative along tangents.

    `func` runs once. The linear map is kept as the gradient of its vjp, which is linear in the
    cotangents: each call of jvp_fn differentiates that with respect to them.
    """
    keep = recording()
    flat, spec = pytree.tree_flatten(primals)
    with enable_grad():
        inputs = [tracking.stand_in(x) for x in flat]
        output = func(*spec.unflatten(inputs))
        outputs, out_spec = pytree.tree_flatten(output)
        check_outputs(outputs, "linearize(f, *primals)", output)
        moving = [y for y in outputs if edge_of(y) is not None]
        weights = [aten.zeros_like(y).requires_grad_() for y in moving]
        pulled: tuple[Any, ...] = (None,) * len(inputs)
        if moving:
            pulled = autograd.grad(moving, inputs, weights, create_graph=True, allow_unused=True)
    tracking.ended([*inputs, *weights])

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = pytree.tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}"
            )
        for i, (x, t) in enumerate(zip(flat, given, strict=True)):
            for what, of_tangent, of_primal in (
                ("shape", t.shape, x.shape), ("device", t.device, x.device),
                ("dtype", t.dtype, x.dtype),
            ):  # fmt: skip
                if of_tangent != of_primal:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {of_tangent} in flattened pytree doesn't match "
                        f"the {what} {of_primal} of the corresponding primal."
                    )
        pairs = [
            (g, t) for g, t in zip(pulled, given, strict=True)
            if g is not None and edge_of(g) is not None
        ]  # fmt: skip
        found: Any = (None,) * len(moving)
        if pairs:
            found = autograd.grad(
                [g for g, _ in pairs], weights, [t for _, t in pairs], retain_graph=True,
                create_graph=recording(), allow_unused=True,
            )  # fmt: skip
        rest = iter(found)
        made = []
        for y in outputs:
            g = next(rest) if any(y is m for m in moving) else None
            made.append(aten.zeros_like(y) if g is None else g)
        return tracking.results(out_spec.unflatten(made), recording())

    return tracking.results(output, keep), jvp_fn


__all__ = ["jvp", "linearize"]
