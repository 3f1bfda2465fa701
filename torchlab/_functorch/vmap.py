"""`vmap`: a function of single examples on a whole batch.

The steps have PyTorch's names, and `vmap` looks them up when it runs: a library that has containers
of its own puts its own steps into this module, as it does with PyTorch's.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.vmap.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlab._core import pytree
from torchlab._core.dispatch import batches
from torchlab._core.dispatch.registry import aten
from torchlab._core.pytree import (
    broadcast_to_and_flatten as _broadcast_to_and_flatten,
)
from torchlab._core.pytree import (
    tree_flatten,
    tree_unflatten,
)
from torchlab._core.tensor import Tensor
from torchlab.func import tracking
from torchlab.func.arguments import name_of
from torchlab.func.arguments import name_of as _get_name

Dims = Any  # an int, None, or a tree of them


def vmap(
    func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that runs `func` on all slices of its arguments at once.

    in_dims: the dimension of each argument that is hidden from `func`, None for what all share: an
    int for all, or a tuple with an entry (an int, None or a tree like the argument) for each.
    out_dims: where the dimension goes in each output. randomness: what random operators inside do:
    "error", draw "different" numbers for each slice, or the "same". chunk_size: how many slices at
    once; None for all. All share the keyword arguments.

    ValueError if dimensions do not fit the arguments or their sizes differ.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got"
            f" {randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None or size <= chunk_size:
            return _mapped(func, size, flat, dims, spec, kwargs, out_dims, randomness)
        return _in_chunks(func, size, flat, dims, spec, kwargs, out_dims, randomness, chunk_size)

    return wrapper


def _spread(dims: Any, spec: pytree.TreeSpec) -> list[Any] | None:
    """An int, None or tree of them for each leaf of the structure; None if it does not fit."""
    if spec.is_leaf():
        return [dims] if pytree.tree_is_leaf(dims) else None
    if pytree.tree_is_leaf(dims):
        return [dims] * spec.num_leaves
    children, other = pytree.tree_flatten(dims, is_leaf=lambda x: x is not dims)
    whole = pytree.TreeSpec(spec.type, spec.context, other.children_specs)
    if other.type is not spec.type or len(children) != spec.num_children:
        return None
    if whole.context != other.context:
        return None
    found: list[Any] = []
    for d, child in zip(children, spec.children_specs, strict=True):
        part = _spread(d, child)
        if part is None:
            return None
        found += part
    return found


def _process_batched_inputs(
    in_dims: Dims, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[Any], list[Any], pytree.TreeSpec]:
    """The size of the batch; the dimension of each leaf among the arguments; the leaves; how they
    are put together."""
    what = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{what}: expected `in_dims` to be int or a (potentially nested) tuple matching the"
            f" structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or"
            " you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    flat, spec = pytree.tree_flatten(args)
    dims = _spread(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{what}: in_dims is not compatible with the structure of `inputs`. in_dims has"
            f" structure {pytree.tree_structure(in_dims)} but inputs has structure {spec}."
        )
    for i, (x, d) in enumerate(zip(flat, dims, strict=True)):
        dims[i] = _checked(x, d, what)
    sizes = {x.shape[d] for x, d in zip(flat, dims, strict=True) if d is not None}
    if not sizes:
        raise ValueError(
            f"{what}: at least one of the inputs must be mapped over, but every in_dim is None."
        )
    if len(sizes) > 1:
        every = [x.shape[d] for x, d in zip(flat, dims, strict=True) if d is not None]
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes"
            f" {every} for the mapped dimension"
        )
    return sizes.pop(), dims, flat, spec


def _checked(x: Any, d: Any, what: str) -> Any:
    if d is not None and not isinstance(d, int):
        raise ValueError(
            f"{what}: Got in_dim={d} for an input but in_dim must be either an integer dimension or"
            " None."
        )
    if isinstance(d, bool):
        raise TypeError(f"{what}: an entry of in_dims must be int, not bool")
    if d is None:
        return None
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{what}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot"
            " vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -x.ndim <= d < x.ndim:
        raise ValueError(
            f"{what}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality"
            f" {x.ndim} so expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
        )
    return d % x.ndim


def _mapped(
    func: Callable[..., Any], size: int, flat: list[Any], dims: list[Any], spec: pytree.TreeSpec,
    kwargs: dict[str, Any], out_dims: Dims, randomness: str,
) -> Any:  # fmt: skip
    level = batches.enter(size, randomness)
    try:
        output = func(*_create_batched_inputs(dims, flat, level, spec), **kwargs)
        return _unwrap_batched(output, out_dims, level, size, func)
    finally:
        batches.leave()


def _create_batched_inputs(
    flat_in_dims: list[Any], flat_args: list[Any], vmap_level: int, args_spec: pytree.TreeSpec
) -> Any:
    """The arguments as the function gets them."""
    return args_spec.unflatten(
        x if d is None else _add_batch_dim(x, d, vmap_level)
        for x, d in zip(flat_args, flat_in_dims, strict=True)
    )


def _add_batch_dim(tensor: Any, batch_dim: int, level: int) -> Any:
    """The tensor as `vmap` of this level shows it to its function: without a dimension."""
    return batches.batched(tensor, batch_dim % tensor.ndim, level)


def _unwrap_batched(
    output: Any, out_dims: Dims, level: int, size: int, func: Callable[..., Any]
) -> Any:
    """What the function gave, with the dimension of the batch."""
    flat, spec = pytree.tree_flatten(output)
    name = name_of(func)
    if isinstance(output, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _spread(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the"
            f" structure of `outputs`. out_dims has structure {pytree.tree_structure(out_dims)} but"
            f" outputs has structure {spec}."
        )
    return spec.unflatten(
        _maybe_remove_batch_dim(name, x, level, size, d) for x, d in zip(flat, dims, strict=True)
    )


def _maybe_remove_batch_dim(name: str, x: Any, level: int, size: int, d: Any) -> Any:
    """An output with its dimension `d`; None: as it is, for what is no batch."""
    return tracking.result(_unwrapped(x, d, size, level, name))


def _unwrapped(x: Any, d: Any, size: int, level: int, name: str) -> Any:
    if d is not None and not isinstance(d, int):
        raise ValueError(
            f"vmap({name}, ..., out_dims={d}): `out_dims` must be an int, None or a python"
            f" collection of ints, got an element of type {type(d)}"
        )
    if d is None:
        if isinstance(x, Tensor) and x._level == level:  # type: ignore[attr-defined]
            if x.bdim is None:
                return x.value
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return x
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you"
            " mean to set out_dims= to None for output?"
        )
    n = x.ndim + 1
    if not -n <= d < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})"
        )
    d %= n
    inner, bdim = (x.value, x.bdim) if x._level == level else (x, None)  # type: ignore[attr-defined]
    if bdim is None:
        shape = list(inner.shape)
        shape.insert(d, size)
        return aten.expand(aten.unsqueeze(inner, d), tuple(shape))
    return inner if bdim == d else aten.movedim(inner, bdim, d)


def _in_chunks(
    func: Callable[..., Any], size: int, flat: list[Any], dims: list[Any], spec: pytree.TreeSpec,
    kwargs: dict[str, Any], out_dims: Dims, randomness: str, chunk: int,
) -> Any:  # fmt: skip
    state = aten.get_rng_state() if randomness == "same" else None
    made: list[list[Any]] = []
    out_spec: Any = None
    where: Any = None
    for first in range(0, size, chunk):
        n = min(chunk, size - first)
        if state is not None:
            aten.set_rng_state(state)
        part = [
            x if d is None else aten.narrow(x, d, first, n) for x, d in zip(flat, dims, strict=True)
        ]
        output = _mapped(func, n, part, dims, spec, kwargs, out_dims, randomness)
        leaves, out_spec = pytree.tree_flatten(output)
        where = _spread(out_dims, out_spec) or [out_dims[0]]
        made.append(leaves)
    joined = [
        column[0] if d is None else aten.cat(list(column), d)
        for column, d in zip(zip(*made, strict=True), where, strict=True)
    ]
    return out_spec.unflatten(joined)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """`_maybe_remove_batch_dim` for what is a tensor in any case."""
    return _maybe_remove_batch_dim("_remove_batch_dim", tensor, level, batch_size, out_dim)


__all__ = [
    "Tensor",
    "_add_batch_dim",
    "_broadcast_to_and_flatten",
    "_create_batched_inputs",
    "_get_name",
    "_maybe_remove_batch_dim",
    "_process_batched_inputs",
    "_remove_batch_dim",
    "_unwrap_batched",
    "tree_flatten",
    "tree_unflatten",
    "vmap",
]
