"""What the transforms say of wrong arguments, and which positional arguments `argnums` means.

Source: https://docs.pytorch.org/docs/2.13/func.api.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core import pytree
from torchlab._core.tensor import Tensor

ArgNums = int | tuple[int, ...]


def name_of(func: Callable[..., Any]) -> str:
    """What messages call a function."""
    return getattr(func, "__name__", repr(func))


def checked(argnums: Any, n: int) -> ArgNums:
    """`argnums` with negative ones counted from the end of `n` arguments. RuntimeError if it is not
    an int or a tuple of different ints in range."""
    if isinstance(argnums, int):
        return _wrapped(argnums, n)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    found = tuple(_wrapped(i, n) for i in argnums)
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def _wrapped(i: Any, n: int) -> int:
    if not isinstance(i, int):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got an element {type(i)}")
    if not -n <= i < n:
        raise RuntimeError(f"Got argnum={i}, but only {n} positional inputs")
    return i % n


def chosen(args: tuple[Any, ...], argnums: ArgNums) -> Any:
    """The arguments that `argnums` means: one, or a tuple."""
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def replaced(args: tuple[Any, ...], argnums: ArgNums, new: Any) -> tuple[Any, ...]:
    """The arguments with others in the places that `argnums` means."""
    full = list(args)
    places, values = ((argnums,), (new,)) if isinstance(argnums, int) else (argnums, new)
    for i, v in zip(places, values, strict=True):
        full[i] = v
    return tuple(full)


def with_aux(output: Any, what: str) -> tuple[Any, Any]:
    """(output, aux) of a function of which `has_aux=True` was said."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def check_aux(aux: Any) -> None:
    """RuntimeError unless aux is made of tensors."""
    for x in pytree.tree_leaves(aux):
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


def check_outputs(flat: list[Any], what: str, output: Any) -> None:
    """RuntimeError unless a function has given tensors only, and at least one."""
    if not flat:
        raise RuntimeError(
            f"{what}: Expected f to be a function that has non-empty output (got output = {output})"
        )
    for x in flat:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"{what}: expected f(*primals) to return only tensors, got unsupported type"
                f" {type(x)}"
            )


__all__ = [
    "ArgNums", "check_aux", "check_outputs", "checked", "chosen", "name_of", "replaced", "with_aux",
]  # fmt: skip
