"""`jacrev`, `jacfwd` and `hessian`: whole Jacobians, a row or a column for each element, at once.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.jacrev.html,
https://docs.pytorch.org/docs/2.13/generated/torch.func.jacfwd.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlab._core import pytree
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab._functorch.vmap import vmap
from torchlab.autograd.unit_vectors import unit_vectors
from torchlab.func.arguments import ArgNums, checked, chosen, replaced, with_aux
from torchlab.func.forward import jvp
from torchlab.func.reverse import vjp


def _split(rows: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """`unit_vectors` backwards: the part of (N, …) that belongs to each tensor, (*shape, …)."""
    parts = aten.split_with_sizes(rows, tuple(t.numel() for t in tensors), 0)
    return [
        aten.reshape(p, (*t.shape, *rows.shape[1:])) for p, t in zip(parts, tensors, strict=True)
    ]


def _check(flat: list[Any], what: str, which: str) -> None:
    if not flat:
        raise RuntimeError(f"{what}: Expected at least one Tensor {which}")
    for x in flat:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{what}: Expected all {which} to be Tensors, got {type(x)}")


def jacrev(
    func: Callable[..., Any], argnums: ArgNums = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of `func` with respect to the arguments `argnums`.

    For each output of `func` (a tree of tensors) there is a tree like the arguments, of tensors of
    shape (*output, *argument). Reverse mode: one pass for all elements of the outputs together, or
    `chunk_size` of them. With `has_aux`, (Jacobian, aux).
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        where = checked(argnums, len(args))
        mine = chosen(args, where)
        made = vjp(lambda x: func(*replaced(args, where, x)), mine, has_aux=has_aux)
        output, pull = made[0], made[1]
        inputs, in_spec = pytree.tree_flatten(mine)
        outputs, out_spec = pytree.tree_flatten(output)
        _check(inputs, "jacrev", "inputs")
        _check(outputs, "jacrev", "outputs")

        def rows(*cotangents: Tensor) -> list[Any]:
            return pytree.tree_flatten(pull(out_spec.unflatten(cotangents)))[0]

        found = vmap(rows, chunk_size=chunk_size)(*unit_vectors(outputs))
        by_input = [_split(r, outputs) for r in found]
        trees = [in_spec.unflatten(part[i] for part in by_input) for i in range(len(outputs))]
        result = out_spec.unflatten(trees)
        return (result, made[2]) if has_aux else result

    return wrapper


def jacfwd(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """As `jacrev`, in forward mode: one pass for all elements of the arguments together.
    `randomness`: see `vmap`."""

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        where = checked(argnums, len(args))
        mine = chosen(args, where)
        inputs, in_spec = pytree.tree_flatten(mine)
        _check(inputs, "jacfwd", "inputs")
        spec: Any = None

        def column(*tangents: Tensor) -> Any:
            nonlocal spec

            def of(x: Any) -> Any:
                result = func(*replaced(args, where, x))
                output, aux = with_aux(result, "jacfwd") if has_aux else (result, ())
                flat, tree = pytree.tree_flatten(output)
                _check(flat, "jacfwd", "outputs")
                return flat, (tree, aux)

            _, made, (spec, aux) = jvp(of, (mine,), (in_spec.unflatten(tangents),), has_aux=True)
            return made, aux

        columns, aux = vmap(column, out_dims=(0, None), randomness=randomness)(
            *unit_vectors(inputs)
        )
        by_output = [
            [aten.movedim(p, tuple(range(x.ndim)), tuple(range(-x.ndim, 0))) if x.ndim else p
             for p, x in zip(_split(c, inputs), inputs, strict=True)]
            for c in columns
        ]  # fmt: skip
        result = spec.unflatten(in_spec.unflatten(parts) for parts in by_output)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of `func`: forward over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["hessian", "jacfwd", "jacrev"]
