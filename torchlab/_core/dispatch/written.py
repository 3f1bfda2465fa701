"""How PyTorch hands on a call of a public function to those it asks: as it was written, or in full.

Functions that PyTorch has in C++ hand on what was written. Those that it has in Python put the
call together again: required arguments by position, the others by name with their defaults.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html#extending-torch-python-api
"""

from __future__ import annotations

import inspect
from typing import Any

AS_WRITTEN, IN_FULL, BY_NAME, EQUATION = 0, 1, 2, 3
"""What a call is handed on as; by name: even the required arguments; equation: einsum's."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The labels of einsum's dimensions; as a number, a label is its place."""

BUILTIN_NN = {
    n: n
    for n in (
        "avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "one_hot",
        "scaled_dot_product_attention", "softplus", "softshrink",
    )
} | {"logsigmoid": "log_sigmoid"}  # fmt: skip
"""Functions of nn.functional that are built-in ones, bound in `_C._nn`: name → name there."""

CALLED_AS_WRITTEN = frozenset(BUILTIN_NN) | frozenset(
    """
    adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink
    native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_
    selu_ threshold_ adaptive_avg_pool2d adaptive_avg_pool3d
    """.split()
)
"""Those of nn.functional that hand on what was written."""

PYTHON_FUNCTIONS = frozenset("""
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum lu norm meshgrid split stft tensordot unique unique_consecutive
    unravel_index
    """.split())  # fmt: skip
"""Functions that PyTorch writes in Python, in `torch.functional`."""

_PYTHON = PYTHON_FUNCTIONS - {"chain_matmul"} | {"lobpcg", "pca_lowrank", "svd_lowrank"}
_METHODS = frozenset(
    """
    __array__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__ __format__ __len__
    __repr__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__
    __rsub__ __rtruediv__ backward is_shared istft lu module_load register_hook
    register_post_accumulate_grad_hook share_memory_ split stft storage storage_type unique
    unique_consecutive
    """.split()
)


def layout(space: str, name: str) -> int:
    """How calls of a function of a name space are handed on; `space` is "Tensor" for methods."""
    if space == "nn.functional":
        return AS_WRITTEN if name in CALLED_AS_WRITTEN else IN_FULL
    if space == "torch":
        if name == "einsum":
            return EQUATION
        return IN_FULL if name in _PYTHON else AS_WRITTEN
    return IN_FULL if space == "Tensor" and name in _METHODS else AS_WRITTEN


def with_equation(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of `einsum` as its equation and the operands: `(x, [0, 1], y, [1, 2])`, or
    `("AB,BC", [x, y])`, is `("AB,BC", x, y)`."""
    if isinstance(args[0], str):
        several = len(args) == 2 and isinstance(args[1], (list, tuple))
        return (args[0], *args[1]) if several else args
    n = len(args) // 2
    equation = ",".join(_labels(x) for x in args[1 : 2 * n : 2])
    if len(args) % 2:
        equation += f"->{_labels(args[-1])}"
    return (equation, *args[: 2 * n : 2])


def _labels(numbers: Any) -> str:
    parts = []
    for x in numbers:
        if x is ...:
            parts.append("...")
        elif 0 <= x < len(LETTERS):
            parts.append(LETTERS[x])
        else:
            raise ValueError(
                "einsum(): subscripts in sublist format must be within the range [0, 52), but got "
                f"{x}"
            )
    return "".join(parts)


class Layout:
    """How calls of one function are handed on."""

    __slots__ = ("how", "signature", "required", "named")

    def __init__(self, how: int, signature: inspect.Signature) -> None:
        self.how, self.signature = how, signature
        kinds = [p.kind for p in signature.parameters.values()]
        only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        self.required = -1  # how many come first; -1: not all parameters are plain ones
        self.named: dict[str, Any] = {}  # the others' names and defaults
        if how == IN_FULL and all(k in only for k in kinds):
            every = [*signature.parameters.values()]
            first = [p for p in every if p.default is p.empty]
            if first == every[: len(first)] and only[1] not in [p.kind for p in first]:
                self.required = len(first)
                self.named = {p.name: p.default for p in every[len(first) :]}

    def of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) of a call as it is handed on; a call that does not fit stays as it is."""
        if self.how == EQUATION:
            return (args if len(args) < 2 else with_equation(args)), kwargs
        if len(args) == self.required and kwargs.keys() <= self.named.keys():
            return args, {**self.named, **kwargs}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs
        bound.apply_defaults()
        plain: list[Any] = []
        named: dict[str, Any] = {}
        for p in self.signature.parameters.values():
            value = bound.arguments[p.name]
            if p.kind is p.VAR_POSITIONAL:
                plain += value
            elif p.kind is p.VAR_KEYWORD:
                named.update(value)
            elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY and self.how == IN_FULL:
                plain.append(value)
            else:
                named[p.name] = value
        return tuple(plain), named


__all__ = [
    "AS_WRITTEN", "BUILTIN_NN", "BY_NAME", "CALLED_AS_WRITTEN", "EQUATION", "IN_FULL", "LETTERS",
    "Layout", "PYTHON_FUNCTIONS", "layout", "with_equation",
]  # fmt: skip
