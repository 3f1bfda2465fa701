"""`SymInt`, `SymFloat` and `SymBool`: numbers that carry an expression and their example's value.

Note [Numbers that are no numbers]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The rules for shapes are plain Python on ints. A SymInt goes through them because it answers
`isinstance(n, int)` with True (its `__class__` says so) while it is no int underneath: what needs
the number itself (`range(n)`, `[0] * n`, `int(n)`, NumPy, a hash) has to call `__index__`,
`__int__` or `__hash__`, and there it becomes known that the program depends on this one value. Were
it a subclass of int, C code would read the example's value and nobody would know.

Source: https://docs.pytorch.org/docs/2.13/torch.html#torch.SymInt
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchlab._core.dispatch import watching
from torchlab._core.tensor import Tensor
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Expr
from torchlab.fx.experimental._shape_env import Relation, ShapeEnv


class SymNode:
    """What a symbolic number holds: the expression, the environment of its symbols, the Python type
    that it stands for."""

    __slots__ = ("expr", "shape_env", "pytype")

    def __init__(self, expr: Any, shape_env: ShapeEnv, pytype: type) -> None:
        self.expr = expr
        self.shape_env = shape_env
        self.pytype = pytype

    @property
    def hint(self) -> Any:
        """The value for the example's sizes."""
        if isinstance(self.expr, Expr):
            return self.shape_env.hint(self.expr)
        return _truth(self.expr, lambda r: r.holds(self.shape_env.var_to_val))

    def has_hint(self) -> bool:
        """Whether the example gives it a value: always."""
        return True

    def __repr__(self) -> str:
        return str(self.expr)


class _Number:
    """What SymInt and SymFloat share."""

    __slots__ = ("node",)

    def __init__(self, node: SymNode) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node.shape_env.simplify(self.node.expr))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec) if not spec else format(self._known(), spec)

    def __hash__(self) -> int:
        return hash(self._known())

    def __bool__(self) -> bool:
        return self.node.shape_env.evaluate(Relation("ne", self.node.expr))

    def __float__(self) -> float:
        return float(self._known())

    def __int__(self) -> int:
        return int(self._known())

    def __complex__(self) -> complex:
        return complex(self._known())

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"cannot pickle {type(self).__name__} {self}: it is a size of a running trace"
        )

    def _known(self) -> Any:
        """The value itself: from now on the trace holds for this one only."""
        return known(self)

    def __neg__(self) -> Any:
        return of_expr(self.node.expr.times(-1), self.node.shape_env, self.node.pytype)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def is_integer(self) -> bool:
        """Whether the value is a whole number."""
        return self.node.pytype is int or bool(self == self.__trunc__())

    def as_integer_ratio(self) -> tuple[int, int]:
        """The value as a fraction: it becomes known."""
        return self._known().as_integer_ratio()  # type: ignore[no-any-return]

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    if TYPE_CHECKING:  # the operators are made below

        def __ge__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __trunc__(self) -> Any: ...


class SymInt(_Number):
    """A size that is not known while a program is traced; Note [Numbers that are no numbers]."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def __index__(self) -> int:
        return int(self._known())

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __round__(self, ndigits: int | None = None) -> Any:
        return self

    def __sym_max__(self, other: Any) -> Any:
        return _extreme("max", self, other)

    def __sym_min__(self, other: Any) -> Any:
        return _extreme("min", self, other)

    def __sym_float__(self) -> Any:
        return of_expr(self.node.expr, self.node.shape_env, float)

    def bit_length(self) -> int:
        """The number of bits: the value becomes known."""
        return int(self._known()).bit_length()

    @property
    def real(self) -> SymInt:
        """The number itself."""
        return self

    imag = property(lambda self: 0)
    numerator = real
    denominator = property(lambda self: 1)

    def conjugate(self) -> SymInt:
        """The number itself."""
        return self


class SymFloat(_Number):
    """A float computed from sizes that are not known."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float

    def __trunc__(self) -> Any:
        return self._rounded("trunc")

    def __ceil__(self) -> Any:
        return self._rounded("ceil")

    def __floor__(self) -> Any:
        return self._rounded("floor")

    def _rounded(self, op: str) -> Any:
        return of_expr(ex.rounded(op, self.node.expr), self.node.shape_env, int)

    def __sym_float__(self) -> SymFloat:
        return self

    @property
    def real(self) -> SymFloat:
        """The number itself."""
        return self

    imag = property(lambda self: 0.0)


class SymBool:
    """A question about sizes. `bool(b)` asks it."""

    __slots__ = ("node",)

    def __init__(self, node: SymNode) -> None:
        self.node = node

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return bool

    def __repr__(self) -> str:
        return _shown(self.node.expr)

    def __bool__(self) -> bool:
        return _truth(self.node.expr, self.node.shape_env.evaluate)

    def __int__(self) -> int:
        return int(bool(self))

    __index__ = __int__

    def __hash__(self) -> int:
        return hash(bool(self))

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __and__(self, other: Any) -> Any:
        return _joined("and", self, other)

    def __or__(self, other: Any) -> Any:
        return _joined("or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return of_question(("not", self.node.expr), self.node.shape_env)

    __sym_not__ = __invert__

    def __deepcopy__(self, memo: Any) -> SymBool:
        return self


# ---- making them ---------------------------------------------------------------------------------


def of_expr(e: Expr, env: ShapeEnv, pytype: type = int) -> Any:
    """The number that an expression is: a plain one if it is known."""
    constant = e.constant
    if constant is not None:
        return pytype(constant)
    return (SymInt if pytype is int else SymFloat)(SymNode(e, env, pytype))


def duck_symint(env: ShapeEnv, val: int, source: str = "") -> Any:
    """The symbolic size for an example value: equal values give the same."""
    return of_expr(ex.of(env.duck_symbol(val, source)), env)


ShapeEnv.duck_symint = duck_symint  # type: ignore[attr-defined]


def of_question(question: Any, env: ShapeEnv) -> Any:
    """A relation, or ("and" | "or" | "not", questions): a plain bool if the answer is known."""
    if isinstance(question, Relation):
        found = env.static(question)
        if found is not None:
            return found
    return SymBool(SymNode(question, env, bool))


def known(x: Any) -> Any:
    """The value of a symbolic number, with a guard that it is this one."""
    node = x.node
    env = node.shape_env
    value = env.hint(node.expr)
    if node.pytype is int:
        value = int(value)
        env.evaluate(Relation("eq", node.expr - ex.number(value)))
        return value
    for symbol in sorted(env.simplify(node.expr).symbols, key=lambda s: s.key):
        env.evaluate(Relation("eq", ex.of(symbol) - ex.number(env.var_to_val[symbol])))
    return float(value)


def expr_of(x: Any) -> Expr | None:
    """The expression of a number, symbolic or not; None for anything else."""
    t = type(x)
    if t is SymInt or t is SymFloat:
        return x.node.expr  # type: ignore[no-any-return]
    if t is int or t is float or t is bool:
        return ex.number(int(x) if t is bool else x)
    if isinstance(x, Tensor):
        return None
    return ex.number(operator.index(x)) if hasattr(x, "__index__") else None


def _truth(question: Any, ask: Callable[[Relation], bool]) -> bool:
    if isinstance(question, bool):
        return question
    if isinstance(question, Relation):
        return ask(question)
    op, *parts = question
    if op == "not":
        return not _truth(parts[0], ask)
    if op == "and":
        return all(_truth(p, ask) for p in parts)
    return any(_truth(p, ask) for p in parts)


def _shown(question: Any) -> str:
    if not isinstance(question, tuple):
        return str(question)
    op, *parts = question
    if op == "not":
        return f"~({_shown(parts[0])})"
    return f" {'&' if op == 'and' else '|'} ".join(f"({_shown(p)})" for p in parts)


def _joined(op: str, a: Any, b: Any) -> Any:
    other = b.node.expr if type(b) is SymBool else bool(b)
    return of_question((op, a.node.expr, other), a.node.shape_env)


def _extreme(op: str, a: Any, b: Any) -> Any:
    x, y = expr_of(a), expr_of(b)
    if x is None or y is None:
        raise TypeError(f"sym_{op}: expected numbers, not {type(a).__name__}, {type(b).__name__}")
    env = (a if isinstance(a, (SymInt, SymFloat)) else b).node.shape_env
    pytype = float if _is_float(a) or _is_float(b) else int
    difference = Relation("ge", x - y)
    found = env.static(difference)
    if found is not None:
        return a if found == (op == "max") else b
    return of_expr(ex.call(op, x, y), env, pytype)


def _is_float(x: Any) -> bool:
    return type(x) in (float, SymFloat)


# ---- their operators -----------------------------------------------------------------------------


def _arithmetic(name: str, op: str) -> None:
    def apply(a: Any, b: Any, env: ShapeEnv) -> Any:
        x, y = expr_of(a), expr_of(b)
        if x is None or y is None:
            return NotImplemented
        floats = op == "truediv" or _is_float(a) or _is_float(b)
        if op in ("floordiv", "mod", "truediv") and type(b) in (SymInt, SymFloat) and b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        if op in ("floordiv", "mod") and floats:
            a, b = (known(v) if type(v) in (SymInt, SymFloat) else v for v in (a, b))
            return a // b if op == "floordiv" else a % b
        return of_expr(ex.call(op, env.simplify(x), env.simplify(y)), env, float if floats else int)

    def forward(self: Any, other: Any) -> Any:
        return apply(self, other, self.node.shape_env)

    def reflected(self: Any, other: Any) -> Any:
        return apply(other, self, self.node.shape_env)

    setattr(_Number, f"__{name}__", forward)
    setattr(_Number, f"__r{name}__", reflected)


def _comparison(name: str, relation: Callable[[Expr, Expr, bool], Relation]) -> None:
    def compare(self: Any, other: Any) -> Any:
        y = expr_of(other)
        if y is None:
            return NotImplemented
        whole = not (_is_float(self) or _is_float(other))
        return of_question(relation(self.node.expr, y, whole), self.node.shape_env)

    setattr(_Number, f"__{name}__", compare)


def _ge(a: Expr, b: Expr, whole: bool) -> Relation:
    return Relation("ge", a - b)


def _gt(a: Expr, b: Expr, whole: bool) -> Relation:
    return Relation("ge", a - b - ex.number(1)) if whole else Relation("gt", a - b)


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow"):
    _arithmetic(_name, _name)
_comparison("eq", lambda a, b, whole: Relation("eq", a - b))
_comparison("ne", lambda a, b, whole: Relation("ne", a - b))
_comparison("ge", _ge)
_comparison("gt", _gt)
_comparison("le", lambda a, b, whole: _ge(b, a, whole))
_comparison("lt", lambda a, b, whole: _gt(b, a, whole))
_integers = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift,
}  # fmt: skip
for _name, _fn in _integers.items():
    setattr(SymInt, f"__{_name}__", lambda self, other, fn=_fn: fn(known(self), other))
    setattr(SymInt, f"__r{_name}__", lambda self, other, fn=_fn: fn(other, known(self)))

# ---- functions of them ---------------------------------------------------------------------------


def sym_max(a: Any, b: Any) -> Any:
    """`max(a, b)` that asks nothing of symbolic numbers."""
    if type(a) in (SymInt, SymFloat) or type(b) in (SymInt, SymFloat):
        return _extreme("max", a, b)
    return float(max(a, b)) if _is_float(a) or _is_float(b) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """`min(a, b)` that asks nothing of symbolic numbers."""
    if type(a) in (SymInt, SymFloat) or type(b) in (SymInt, SymFloat):
        return _extreme("min", a, b)
    return float(min(a, b)) if _is_float(a) or _is_float(b) else min(a, b)


def sym_float(a: Any) -> Any:
    """The number as a float, symbolic if it was."""
    return a.__sym_float__() if type(a) in (SymInt, SymFloat) else float(a)


def sym_int(a: Any) -> Any:
    """The number as an integer, towards zero; symbolic if it was."""
    if type(a) in (SymInt, SymFloat):
        return a.__trunc__()
    return math.trunc(a)


def sym_not(a: Any) -> Any:
    """`not a` that does not ask."""
    return ~a if type(a) is SymBool else not a


def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t if b else f`: the question is asked."""
    return t if b else f


for _function in (sym_float, sym_ite, sym_max, sym_min, sym_not, sym_sum):
    watching.watch(_function)  # PyTorch asks about them, too

__all__ = [
    "SymBool", "SymFloat", "SymInt", "SymNode", "expr_of", "known", "of_expr", "of_question",
    "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum",
]  # fmt: skip
