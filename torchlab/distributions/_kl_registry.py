"""The table of divergences: which function computes KL(p ‖ q) for two types.

Public as `torchlab.distributions.kl`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.distributions.distribution import Distribution

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator: the function computes KL(p ‖ q) for p of `type_p` and q of `type_q`, and of
    subclasses of both, where no closer pair is registered. Any class will do, as in PyTorch:
    libraries register base classes of their own that are no Distribution."""
    if not isinstance(type_p, type):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(fun: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _closer(one: tuple[type, type], other: tuple[type, type], order: tuple[int, ...]) -> bool:
    """Whether pair `one` is at least as special as `other`, compared in the given order."""
    for i in order:
        if not issubclass(one[i], other[i]):
            return False
        if one[i] is not other[i]:
            break
    return True


def _dispatch_kl(type_p: type, type_q: type) -> Callable[[Any, Any], Tensor] | None:
    """The function of the most special pair that fits, or None."""
    fitting = [
        pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    ]
    if not fitting:
        return None

    def best(order: tuple[int, ...]) -> tuple[type, type]:
        return functools.reduce(lambda a, b: a if _closer(a, b, order) else b, fitting)

    left, right = best((0, 1)), best((1, 0))
    left_fun, right_fun = _KL_REGISTRY[left], _KL_REGISTRY[right]
    if left_fun is not right_fun:
        names = [kind.__name__ for kind in (*left, *right)]
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({names[0]}, {names[3]})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left_fun


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p ‖ q) in nats, of shape batch_shape."""
    pair = type(p), type(q)
    fun = _KL_MEMOIZE.get(pair)
    if fun is None:
        fun = _dispatch_kl(*pair)
        if fun is None:
            raise NotImplementedError(
                f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type "
                f"{q.__class__.__name__}"
            )
        _KL_MEMOIZE[pair] = fun
    return fun(p, q)
