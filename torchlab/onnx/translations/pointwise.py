"""Pointwise operators, with PyTorch's promotion of types.

Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.tensor import Tensor
from torchlab.fx.experimental._symbolic_numbers import SymFloat, SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates


def result(g: Builder, node: Node) -> dt.dtype:
    """The dtype of the node's result."""
    found: dt.dtype = g.dtype(node)
    return found


def common(g: Builder, *operands: Any) -> dt.dtype:
    """The dtype in which operands meet."""
    dims = zeros = numbers = None
    for x in operands:
        val = x.meta["val"] if isinstance(x, Node) else x
        if isinstance(val, Tensor):
            if val.dim():
                dims = val.dtype if dims is None else dt.promote_types(dims, val.dtype)
            else:
                zeros = val.dtype if zeros is None else dt.promote_types(zeros, val.dtype)
        elif val is not None:
            d = (
                dt.int64 if type(val) is SymInt
                else dt.get_default_dtype() if type(val) is SymFloat
                else dt.of_scalar(val)
            )  # fmt: skip
            numbers = d if numbers is None else dt.promote_types(numbers, d)
    return dt.combine(dims, zeros, numbers)


def _unary(name: str, kind: str) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node) -> str:
        return g.op(kind, g.of(x, result(g, node)))


for _name, _kind in {
    "abs": "Abs", "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "sigmoid": "Sigmoid", "erf": "Erf", "reciprocal": "Reciprocal",
}.items():  # fmt: skip
    _unary(_name, _kind)


@translates("logical_not")
def logical_not(g: Builder, node: Node, x: Node) -> str:
    return g.op("Not", g.of(x, dt.bool_))


@translates("bitwise_not")
def bitwise_not(g: Builder, node: Node, x: Node) -> str:
    kind = "Not" if g.dtype(x) is dt.bool_ else "BitwiseNot"
    return g.op(kind, g.of(x))


@translates("sign", "sgn")
def sign(g: Builder, node: Node, x: Node) -> str:
    return g.of(x) if g.dtype(x) is dt.bool_ else g.op("Sign", g.of(x))


def _rounding(name: str, kind: str) -> None:
    @translates(f"{name}.default")
    def translate(g: Builder, node: Node, x: Node) -> str:
        if not g.dtype(x).is_floating_point:
            return g.of(x)
        return g.op(kind, g.of(x))


for _name, _kind in {"ceil": "Ceil", "floor": "Floor", "round": "Round"}.items():
    _rounding(_name, _kind)


@translates("round.decimals")
def round_decimals(g: Builder, node: Node, x: Node, decimals: int = 0) -> str:
    d = g.dtype(x)
    if not d.is_floating_point:
        return g.of(x)
    factor = g.of(10.0**decimals, d)
    scaled = g.of(x) if decimals == 0 else g.op("Mul", g.of(x), factor)
    r = g.op("Round", scaled)
    return r if decimals == 0 else g.op("Div", r, factor)


@translates("trunc")
def trunc(g: Builder, node: Node, x: Node) -> str:
    if not g.dtype(x).is_floating_point:
        return g.of(x)
    a = g.of(x)
    return g.op("Mul", g.op("Sign", a), g.op("Floor", g.op("Abs", a)))


@translates("frac")
def frac(g: Builder, node: Node, x: Node) -> str:
    return g.op("Sub", g.of(x), trunc(g, node, x))


@translates("rsqrt")
def rsqrt(g: Builder, node: Node, x: Node) -> str:
    return g.op("Reciprocal", g.op("Sqrt", g.of(x, result(g, node))))


@translates("square")
def square(g: Builder, node: Node, x: Node) -> str:
    a = g.of(x)
    return g.op("Mul", a, a)


@translates("expm1")
def expm1(g: Builder, node: Node, x: Node) -> str:
    d = result(g, node)
    return g.op("Sub", g.op("Exp", g.of(x, d)), g.of(1, d))


@translates("log1p")
def log1p(g: Builder, node: Node, x: Node) -> str:
    d = result(g, node)
    return g.op("Log", g.op("Add", g.of(x, d), g.of(1, d)))


@translates("erfc")
def erfc(g: Builder, node: Node, x: Node) -> str:
    d = result(g, node)
    return g.op("Sub", g.of(1, d), g.op("Erf", g.of(x, d)))


@translates("exp2")
def exp2(g: Builder, node: Node, x: Node) -> str:
    d = result(g, node)
    return g.op("Pow", g.of(2, d), g.of(x, d))


def _logarithm(name: str, base: float) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node) -> str:
        d = result(g, node)
        return g.op("Div", g.op("Log", g.of(x, d)), g.of(base, d))


_logarithm("log2", 0.6931471805599453)
_logarithm("log10", 2.302585092994046)


def _test(name: str, kind: str) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node) -> str:
        d = g.dtype(x)
        return g.op(kind, g.of(x, d if d.is_floating_point else dt.float32))


_test("isnan", "IsNaN")
_test("isinf", "IsInf")


@translates("isfinite")
def isfinite(g: Builder, node: Node, x: Node) -> str:
    d = g.dtype(x)
    a = g.of(x, d if d.is_floating_point else dt.float32)
    return g.op("Not", g.op("Or", g.op("IsNaN", a), g.op("IsInf", a)))


@translates("nan_to_num")
def nan_to_num(g: Builder, node: Node, x: Node, nan: Any, high: Any, low: Any) -> str:
    d = result(g, node)
    if not d.is_floating_point:
        return g.of(x)
    most = _MOST[d]
    a = g.of(x)
    r = g.op("Where", g.op("IsNaN", a), g.of(0.0 if nan is None else float(nan), d), a)
    ends = (("detect_negative", most if high is None else high),
            ("detect_positive", -most if low is None else low))  # fmt: skip
    for off, value in ends:
        r = g.op("Where", g.op("IsInf", a, **{off: 0}), g.of(float(value), d), r)
    return r


_MOST = {
    dt.float32: 3.4028234663852886e38,
    dt.float64: 1.7976931348623157e308,
    dt.float16: 65504.0,
    dt.bfloat16: 3.3895313892515355e38,
}


# ---- two operands --------------------------------------------------------------------------------


def _scaled(g: Builder, x: Any, alpha: Any, d: dt.dtype) -> str:
    a = g.of(x, d)
    return a if alpha == 1 else g.op("Mul", a, g.of(alpha, d))


@translates("add")
def add(g: Builder, node: Node, x: Any, y: Any, alpha: Any = 1) -> str:
    d = result(g, node)
    if d is dt.bool_:
        return g.op("Or", g.of(x, d), g.of(y, d))
    return g.op("Add", g.of(x, d), _scaled(g, y, alpha, d))


@translates("sub")
def sub(g: Builder, node: Node, x: Any, y: Any, alpha: Any = 1) -> str:
    d = result(g, node)
    return g.op("Sub", g.of(x, d), _scaled(g, y, alpha, d))


@translates("rsub")
def rsub(g: Builder, node: Node, x: Any, y: Any, alpha: Any = 1) -> str:
    d = result(g, node)
    return g.op("Sub", g.of(y, d), _scaled(g, x, alpha, d))


@translates("mul")
def mul(g: Builder, node: Node, x: Any, y: Any) -> str:
    d = result(g, node)
    return g.op("And" if d is dt.bool_ else "Mul", g.of(x, d), g.of(y, d))


@translates("div")
def div(g: Builder, node: Node, x: Any, y: Any, rounding_mode: str | None = None) -> str:
    d = result(g, node)
    if rounding_mode == "floor":
        return floor_divide(g, node, x, y)
    a, b = g.of(x, d), g.of(y, d)
    q = g.op("Div", a, b)
    if rounding_mode == "trunc" and d.is_floating_point:
        return g.op("Mul", g.op("Sign", q), g.op("Floor", g.op("Abs", q)))
    return q


@translates("trunc_divide")
def trunc_divide(g: Builder, node: Node, x: Any, y: Any) -> str:
    return div(g, node, x, y, "trunc")


@translates("true_divide")
def true_divide(g: Builder, node: Node, x: Any, y: Any) -> str:
    return div(g, node, x, y)


@translates("floor_divide", "_div_floor")
def floor_divide(g: Builder, node: Node, x: Any, y: Any) -> str:
    d = result(g, node)
    a, b = g.of(x, d), g.of(y, d)
    if d.is_floating_point:
        return g.op("Floor", g.op("Div", a, b))
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b)), b)


@translates("remainder")
def remainder(g: Builder, node: Node, x: Any, y: Any) -> str:
    d = result(g, node)
    a, b = g.of(x, d), g.of(y, d)
    if not d.is_floating_point:
        return g.op("Mod", a, b)
    return g.op("Sub", a, g.op("Mul", g.op("Floor", g.op("Div", a, b)), b))


@translates("fmod")
def fmod(g: Builder, node: Node, x: Any, y: Any) -> str:
    d = result(g, node)
    return g.op("Mod", g.of(x, d), g.of(y, d), fmod=1)


@translates("pow")
def pow_(g: Builder, node: Node, x: Any, y: Any) -> str:
    d = result(g, node)
    if y == 2 and isinstance(x, Node):
        a = g.of(x, d)
        return g.op("Mul", a, a)
    if y == 0.5:
        return g.op("Sqrt", g.of(x, d))
    return g.op("Pow", g.of(x, d), g.of(y, d))


def _meeting(name: str, kind: str) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Any, y: Any) -> str:
        d = result(g, node)
        if d is dt.bool_:
            return g.op("Or" if kind == "Max" else "And", g.of(x), g.of(y))
        return g.op(kind, g.of(x, d), g.of(y, d))


_meeting("maximum", "Max")
_meeting("minimum", "Min")


def _comparison(name: str, kind: str, opposite: bool = False) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Any, y: Any) -> str:
        d = common(g, x, y)
        if d is dt.bool_ and kind != "Equal":
            d = dt.uint8
        r = g.op(kind, g.of(x, d), g.of(y, d))
        return g.op("Not", r) if opposite else r


_comparison("eq", "Equal")
_comparison("ne", "Equal", True)
_comparison("lt", "Less")
_comparison("le", "LessOrEqual")
_comparison("gt", "Greater")
_comparison("ge", "GreaterOrEqual")


def _logical(name: str, kind: str) -> None:
    @translates(f"logical_{name}")
    def logical(g: Builder, node: Node, x: Any, y: Any) -> str:
        return g.op(kind, g.of(x, dt.bool_), g.of(y, dt.bool_))

    @translates(f"bitwise_{name}")
    def bitwise(g: Builder, node: Node, x: Any, y: Any) -> str:
        d = result(g, node)
        which = kind if d is dt.bool_ else f"Bitwise{kind}"
        return g.op(which, g.of(x, d), g.of(y, d))


for _name, _kind in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _logical(_name, _kind)


def _composed(*names: str) -> Any:
    """Register a function of (builder, values, dtype) for two operands of one type."""

    def declare(fn: Any) -> Any:
        @translates(*names)
        def translate(g: Builder, node: Node, x: Any, y: Any) -> str:
            d = result(g, node)
            return fn(g, g.of(x, d), g.of(y, d), d)  # type: ignore[no-any-return]

        return translate

    return declare


@_composed("logaddexp")
def logaddexp(g: Builder, a: str, b: str, d: dt.dtype) -> str:
    away = g.op("Neg", g.op("Abs", g.op("Sub", a, b)))
    away = g.op("Where", g.op("Equal", a, b), g.of(0, d), away)  # of equal infinities, too
    return g.op("Add", g.op("Max", a, b), g.op("Log", g.op("Add", g.op("Exp", away), g.of(1, d))))


@_composed("hypot")
def hypot(g: Builder, a: str, b: str, d: dt.dtype) -> str:
    return g.op("Sqrt", g.op("Add", g.op("Mul", a, a), g.op("Mul", b, b)))


@_composed("copysign")
def copysign(g: Builder, a: str, b: str, d: dt.dtype) -> str:
    size = g.op("Abs", a)
    low = g.op("Less", g.op("Where", g.op("Equal", b, g.of(0, d)), g.op("Reciprocal", b), b),
               g.of(0, d))  # fmt: skip
    return g.op("Where", low, g.op("Neg", size), size)


@_composed("heaviside")
def heaviside(g: Builder, a: str, b: str, d: dt.dtype) -> str:
    step = g.cast(g.op("Greater", a, g.of(0, d)), dt.bool_, d)
    return g.op("Where", g.op("Equal", a, g.of(0, d)), b, step)


@_composed("xlogy", "special_xlogy")
def xlogy(g: Builder, a: str, b: str, d: dt.dtype) -> str:
    zero = g.of(0, d)
    r = g.op("Where", g.op("Equal", a, zero), zero, g.op("Mul", a, g.op("Log", b)))
    return g.op("Where", g.op("IsNaN", b), b, r)


@_composed("atan2")
def atan2(g: Builder, a: str, b: str, d: dt.dtype) -> str:
    """atan(y/x), π further where x < 0; where both are 0 there is no quotient."""
    zero, pi = g.of(0, d), g.of(math.pi, d)
    low = g.op("Less", a, zero)
    turn = g.op("Where", low, g.op("Neg", pi), pi)
    none = g.op("And", g.op("Equal", a, zero), g.op("Equal", b, zero))
    angle = g.op("Where", none, zero, g.op("Atan", g.op("Div", a, b)))
    return g.op("Where", g.op("Less", b, zero), g.op("Add", angle, turn), angle)


def _past_nan(name: str, kind: str) -> None:
    @_composed(name)
    def translate(g: Builder, a: str, b: str, d: dt.dtype) -> str:
        r = g.op(kind, a, b)
        if not d.is_floating_point:
            return r
        return g.op("Where", g.op("IsNaN", a), b, g.op("Where", g.op("IsNaN", b), a, r))


_past_nan("fmax", "Max")
_past_nan("fmin", "Min")


@translates("logit")
def logit(g: Builder, node: Node, x: Node, eps: float | None = None) -> str:
    d = result(g, node)
    a = g.of(x, d)
    if eps is not None:
        a = g.op("Min", g.op("Max", a, g.of(eps, d)), g.of(1 - eps, d))
    return g.op("Log", g.op("Div", a, g.op("Sub", g.of(1, d), a)))


@translates("sinc")
def sinc(g: Builder, node: Node, x: Node) -> str:
    d = result(g, node)
    a = g.op("Mul", g.of(x, d), g.of(math.pi, d))
    none = g.op("Equal", a, g.of(0, d))
    return g.op("Where", none, g.of(1, d), g.op("Div", g.op("Sin", a), a))


# ---- three operands ------------------------------------------------------------------------------


@translates("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(g: Builder, node: Node, condition: Node, x: Any, y: Any) -> str:
    d = result(g, node)
    return g.op("Where", g.of(condition, dt.bool_), g.of(x, d), g.of(y, d))


@translates("masked_fill")
def masked_fill(g: Builder, node: Node, x: Node, mask: Node, value: Any) -> str:
    d = result(g, node)
    return g.op("Where", g.of(mask), g.of(value, d), g.of(x, d))


@translates("clamp")
def clamp(g: Builder, node: Node, x: Node, low: Any = None, high: Any = None) -> str:
    d = result(g, node)
    r = g.of(x, d)
    if low is not None:
        r = g.op("Max", r, g.of(low, d))
    if high is not None:
        r = g.op("Min", r, g.of(high, d))
    return r


@translates("clamp_min", "_clamp_low")
def clamp_min(g: Builder, node: Node, x: Node, low: Any) -> str:
    return clamp(g, node, x, low)


@translates("clamp_max", "_clamp_high")
def clamp_max(g: Builder, node: Node, x: Node, high: Any) -> str:
    return clamp(g, node, x, None, high)


@translates("lerp")
def lerp(g: Builder, node: Node, x: Node, end: Node, weight: Any) -> str:
    d = result(g, node)
    a = g.of(x, d)
    step = g.op("Mul", g.op("Sub", g.of(end, d), a), g.of(weight, d))
    return g.op("Add", a, step)


def _added(name: str, kind: str) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node, a: Node, b: Node, value: Any = 1) -> str:
        d = result(g, node)
        product = g.op(kind, g.of(a, d), g.of(b, d))
        if value != 1:
            product = g.op("Mul", product, g.of(value, d))
        return g.op("Add", g.of(x, d), product)


_added("addcmul", "Mul")
_added("addcdiv", "Div")


# ---- types and copies ----------------------------------------------------------------------------


@translates("_to_copy", "to.dtype", "type_as", "to.other", "to.dtype_layout", "to.device")
def to_copy(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    return g.of(x, result(g, node))


@translates(
    "clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh", "dropout",
    "_conj", "resolve_conj", "resolve_neg", "positive",
)  # fmt: skip
def identity(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    if str(node.target) == "aten.dropout.default" and rest[0] and rest[1]:
        raise Untranslatable("dropout draws random numbers; call model.eval() before the export")
    return g.op("Identity", g.of(x))


@translates("copy")
def copy(g: Builder, node: Node, x: Node, source: Node, *rest: Any) -> str:
    return g.op("Expand", g.of(source, result(g, node)), g.shape_of(x))


__all__ = ["common", "result"]
