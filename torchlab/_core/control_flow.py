"""`torch.cond` and `torch.while_loop`: branches and loops as functions.

Here they run as Python runs them: one branch is called, the loop's body as often as its condition
holds, and the tape records what these did. In a graph of `torch.export` a `cond` is both branches
and a choice. What a graph would need (a body that keeps the shapes
and types of what it carries, tensors as operands) is checked, so that programs stay portable.

Source: https://docs.pytorch.org/docs/2.13/cond.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import bool_
from torchlab._core.tensor import Tensor


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (list, tuple)):
        for x in tree:
            yield from _leaves(x)
    elif isinstance(tree, dict):
        for x in tree.values():
            yield from _leaves(x)
    else:
        yield tree


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    `pred` is a number or a tensor of one element; `operands` are tensors, nested in tuples, lists
    and dicts. Raises RuntimeError for anything else.
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(
        isinstance(x, (Tensor, int)) for x in _leaves(operands)
    ):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of"
            f" tensor leaves, but got {operands}."
        )
    if isinstance(pred, Tensor) and type(pred._a) is MetaArray:
        return _selected(pred, true_fn(*operands), false_fn(*operands))
    return (true_fn if bool(pred) else false_fn)(*operands)


def _selected(pred: Tensor, a: Any, b: Any) -> Any:
    """What `cond` gives where `pred` has no data, as in an export: both branches, and each result
    from one of them. RuntimeError if the branches give different things."""
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return type(a)(_selected(pred, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {k: _selected(pred, a[k], b[k]) for k in a}
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        if type(a) is type(b) and a == b:
            return a
    elif _metadata(a) == _metadata(b):
        return aten.where(aten.to(aten.reshape(pred, ()), dtype=bool_), a, b)
    raise RuntimeError(
        "cond: where the predicate is not known, both branches must give tensors of the same shape,"
        f" type and device, but they give {_shown(a)} and {_shown(b)}"
    )


def _shown(x: Any) -> str:
    return f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else repr(x)


def _metadata(x: Any) -> Any:
    return (x.shape, x.dtype, x.device) if isinstance(x, Tensor) else type(x)


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: tuple[Any, ...] | list[Any],
) -> Any:
    """Replace the carried inputs by `body_fn(*inputs)` as long as `cond_fn(*inputs)` holds; returns
    them. The body has to keep their number, shapes, types and devices: RuntimeError if not."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"Expect carried_inputs to be a tuple or list of tensors, but got {carried_inputs}."
        )
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        made = body_fn(*carried)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise RuntimeError(
                "Expected body_fn_output and carried_inputs to have same number of outputs but got"
                f" {len(made)} and {len(carried)}."
            )
        for i, (new, old) in enumerate(zip(made, carried, strict=True)):
            if _metadata(new) != _metadata(old):
                raise RuntimeError(
                    "Expected body_fn_output and carried_inputs to have same metadata but found:"
                    f" pair[{i}] differ in {_metadata(new)} vs {_metadata(old)}."
                )
        carried = made
    return carried
