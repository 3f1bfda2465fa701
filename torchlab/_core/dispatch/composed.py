"""Calls that reach `__torch_dispatch__` otherwise than they are declared.

Some declarations do in one kernel what PyTorch does with several operators, or take arguments that
PyTorch's do not. While a handler listens, the functions here say the same in PyTorch's operators;
the tape records those, as PyTorch's does. Nothing else ever runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import factories, modes
from torchlab._core.dispatch.arrivals import ADAPTED, virtual
from torchlab._core.dispatch.compute import result_dtypes
from torchlab._core.dispatch.overload import trimmed
from torchlab._core.dispatch.registry import OPS, aten, vjp_helpers
from torchlab._core.tensor import Tensor

COMPOSED: dict[str, Callable[..., Any]] = {}  # declaration → the same in PyTorch's operators


def composed(key: str) -> Callable[[Any], Any]:
    """Let the decorated function stand for a declaration while a handler listens. It may return
    NotImplemented: then the declaration itself arrives."""

    def declare(body: Any) -> Any:
        COMPOSED[key] = body
        return body

    return declare


def _made(name: str, args: tuple[Any, ...], facts: dict[str, Any]) -> Any:
    """A maker as PyTorch's C++ calls it."""
    return modes.python_ask[0](factories.overload(name, "default"), args, facts)


@composed("_reshape_alias.default")
def _reshape_alias(x: Any, size: Any) -> Any:
    return OPS["view"]["default"].call(x, tuple(size))


@composed("_reversed_cumsum.default")
def _reversed_cumsum(x: Any, dim: int) -> Any:
    return aten.flip(aten.cumsum(aten.flip(x, (dim,)), dim), (dim,))


@composed("index_backward.default")
def _index_backward(g: Any, shape: Any, indices: Any) -> Any:
    facts = {"dtype": g.dtype, "layout": g.layout, "device": g.device}
    zeros = _made("new_zeros", (g, list(shape)), facts)
    return aten.index_put(zeros, list(indices), g, True)


@composed("where.self")
def _where(condition: Any, x: Any, y: Any) -> Any:
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return NotImplemented
    op = OPS["where"]["self"]
    made = result_dtypes(op, (condition, x, y))[0]

    def tensor(v: Any) -> Any:
        if isinstance(v, Tensor):
            return v
        facts = {"dtype": made, "layout": condition.layout, "device": condition.device}
        return _made("scalar_tensor", (v,), facts)

    return op.call(condition, tensor(x), tensor(y))


@composed("linear.default")
def _linear(x: Any, weight: Any, bias: Any) -> Any:
    if bias is None or x._a.ndim != 3 or not x._k.contiguous or weight._a.ndim != 2:
        return NotImplemented
    a, b, c = x._a.shape
    r = OPS["addmm"]["default"].call(bias, aten.view(x, (a * b, c)), aten.t(weight))
    return aten.view(r, (a, b, weight._a.shape[0]))


for _n in (2, 3):
    composed(f"_max_pool{_n}d.default")(
        lambda *args, n=_n: getattr(aten, f"max_pool{n}d_with_indices")(*args)[0]
    )


# ---- the same operator with other arguments ----------------------------------------------------


def _softmax_like(name: str) -> None:
    key = f"{name}.default"

    @virtual(f"{key}(Tensor self, int dim, bool half_to_float) -> Tensor")
    def forward(x: Any, dim: int, half_to_float: bool) -> Any:
        return OPS[name]["default"].call(x, dim)

    @virtual(
        f"{name}_backward_data.default(Tensor grad_output, Tensor output, int dim,"
        " ScalarType input_dtype) -> Tensor"
    )
    def backward(g: Any, y: Any, dim: int, dtype: Any) -> Any:
        return OPS[f"{name}_backward"]["default"].call(g, y, dim)

    ADAPTED[key] = lambda op, args, form: (forward, (*args, False), {}, _same)
    ADAPTED[f"{name}_backward.default"] = lambda op, args, form: (
        backward,
        (*args, args[1].dtype),
        {},
        _same,
    )


def _same(result: Any) -> Any:
    return result


_softmax_like("_softmax")
_softmax_like("_log_softmax")


def _pooled(name: str, text: str, kernel: int, stride: int) -> None:
    """A pooling whose stride PyTorch lets be empty: the kernel's size."""
    key = f"_{name}.default"

    @virtual(f"{name}.default{text}")
    def forward(*args: Any) -> Any:
        full = list(args)
        full[stride] = full[stride] or full[kernel]
        return OPS[f"_{name}"]["default"].call(*full)

    def adapt(op: Any, args: Any, form: str) -> Any:
        full = list(args)
        if tuple(full[stride]) == tuple(full[kernel]):
            full[stride] = []
        told, named = trimmed(forward.parsed, full)
        return forward, told, named, _same

    ADAPTED[key] = adapt


for _n in (2, 3):
    _pooled(
        f"avg_pool{_n}d",
        f"(Tensor self, int[{_n}] kernel_size, int[{_n}] stride=[], int[{_n}] padding=0, bool"
        " ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        1,
        2,
    )


@virtual(
    "convolution_backward.default(Tensor grad_output, Tensor input, Tensor weight, SymInt[]?"
    " bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[]"
    " output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)
def convolution_backward(
    g: Any, x: Any, w: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, mask: Any,
) -> Any:  # fmt: skip
    return vjp_helpers["convolution_vjp"](
        g, x, w, tuple(stride), tuple(padding), tuple(dilation), transposed, groups, mask
    )


def stands_for(op: Any, args: Any) -> Any:
    """The result of a call in PyTorch's operators; NotImplemented if it arrives as it is."""
    body = COMPOSED.get(f"{op.name}.{op.overload}") if op.namespace == "aten" else None
    return NotImplemented if body is None else body(*args)


modes.composed.append(stands_for)

__all__ = ["COMPOSED", "composed", "convolution_backward", "stands_for"]
