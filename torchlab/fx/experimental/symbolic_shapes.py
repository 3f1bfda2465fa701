"""`torch.fx.experimental.symbolic_shapes`: shapes with sizes that are not known.

Source: https://docs.pytorch.org/docs/2.13/fx.experimental.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Symbol
from torchlab.fx.experimental._shape_env import ShapeEnv, ShapeGuard
from torchlab.fx.experimental._symbolic_numbers import (
    SymBool,
    SymFloat,
    SymInt,
    known,
    of_expr,
    of_question,
)
from torchlab.utils import _pytree as pytree

SymTypes = (SymInt, SymFloat, SymBool)


class ConstraintViolationError(RuntimeError):
    """What was declared of a size does not fit what the program asks of it."""


class GuardOnDataDependentSymNode(RuntimeError):
    """The program asks for a value that only the data can give."""


def create_symint(env: ShapeEnv, val: int, source: str = "", low: int = 0, high: Any = None) -> Any:
    """A SymInt of a new symbol with an example value and a range."""
    symbol = env.create_symbol(val, source, low, float("inf") if high is None else high)
    return symint_of(env, symbol)


def symint_of(env: ShapeEnv, symbol: Symbol) -> Any:
    """The SymInt of a symbol."""
    return of_expr(ex.of(symbol), env)


def is_symbolic(val: Any) -> bool:
    """Whether a number is symbolic."""
    return type(val) in SymTypes


def is_concrete_int(a: Any) -> bool:
    """Whether an integer is known: a plain one, or a symbolic one that was specialised."""
    if type(a) is not SymInt:
        return isinstance(a, int)
    return a.node.shape_env.simplify(a.node.expr).constant is not None


def is_concrete_bool(a: Any) -> bool:
    """Whether the answer of a question is known."""
    return type(a) is bool or (type(a) is SymBool and statically_known(a) is not None)


def is_concrete_float(a: Any) -> bool:
    """Whether a float is known."""
    if type(a) is not SymFloat:
        return isinstance(a, float)
    return a.node.shape_env.simplify(a.node.expr).constant is not None


def has_hint(a: Any) -> bool:
    """Whether the example gives a number a value: always."""
    return True


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The value of a size in the example; asks nothing."""
    return int(a.node.hint) if type(a) is SymInt else int(a)


def guard_int(a: Any) -> int:
    """The value of a size, which the trace from now on depends on."""
    return known(a) if type(a) is SymInt else int(a)  # type: ignore[no-any-return]


def guard_float(a: Any) -> float:
    """The value of a float, which the trace from now on depends on."""
    return known(a) if type(a) is SymFloat else float(a)  # type: ignore[no-any-return]


def guard_bool(a: Any) -> bool:
    """The answer of a question, which the trace from now on depends on."""
    return bool(a)


def statically_known(a: Any) -> bool | None:
    """The answer of a question as far as it is known without asking the example; None if not."""
    if type(a) is not SymBool:
        return bool(a)
    env = a.node.shape_env

    def answer(q: Any) -> bool | None:
        if isinstance(q, bool):
            return q
        if not isinstance(q, tuple):
            return env.static(q)  # type: ignore[no-any-return]
        op, *parts = q
        answers = [answer(p) for p in parts]
        if op == "not":
            return None if answers[0] is None else not answers[0]
        decisive = op == "or"
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive

    return answer(a.node.expr)


def statically_known_true(x: Any) -> bool:
    """Whether a question's answer is known to be yes; asks nothing."""
    return statically_known(x) is True


def statically_known_false(x: Any) -> bool:
    """Whether a question's answer is known to be no; asks nothing."""
    return statically_known(x) is False


def guard_or_true(a: Any) -> bool:
    """The answer of a question; every size has an example here, so the question is asked."""
    return bool(a)


def guard_or_false(a: Any) -> bool:
    """The answer of a question; every size has an example here, so the question is asked."""
    return bool(a)


def sym_eq(x: Any, y: Any) -> Any:
    """`x == y` of numbers, or of tuples of them, as one question."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        if len(x) != len(y):
            return False
        result: Any = True
        for a, b in zip(x, y, strict=True):
            one = sym_eq(a, b)
            if one is False:
                return False
            if one is not True:
                result = one if result is True else result & one
        return result
    return x == y


def has_free_symbols(val: Any) -> bool:
    """Whether a number, a tensor's shape, or anything in a pytree of them is symbolic."""
    return bool(free_symbols(val))


def free_symbols(val: Any) -> set[Symbol]:
    """The symbols in a number, a tensor's shape and strides, or a pytree of them."""
    found: set[Symbol] = set()
    for x in pytree.tree_leaves(val):
        if isinstance(x, Tensor):
            for n in (*x.shape, *x.stride(), x.storage_offset()):
                found |= free_symbols(n)
        elif type(x) in (SymInt, SymFloat):
            found |= x.node.shape_env.simplify(x.node.expr).symbols
    return found


__all__ = [
    "ConstraintViolationError", "GuardOnDataDependentSymNode", "ShapeEnv", "ShapeGuard", "SymTypes",
    "create_symint", "free_symbols", "guard_bool", "guard_float", "guard_int", "guard_or_false",
    "guard_or_true", "has_free_symbols", "has_hint", "hint_int", "is_concrete_bool",
    "is_concrete_float", "is_concrete_int", "is_symbolic", "of_question", "statically_known",
    "statically_known_false", "statically_known_true", "sym_eq", "symint_of",
]  # fmt: skip
