"""The names, types and numbers from which random programs are made (`program_steps.py`)."""

from __future__ import annotations

FLOATS = ("float32", "float64", "bfloat16", "float16")
DTYPES = ("float32",) * 5 + ("float64",) * 3 + (
    "int64", "int64", "int32", "int8", "uint8", "bool", "bool", "complex64", "complex128",
    "bfloat16", "float16",
)  # fmt: skip
SIZES = (0, 1, 1, 2, 2, 3, 3, 5)
SPECIAL = ("nan", "inf", "-inf", "-0.0", "0.0")
UNARY = (
    "abs", "neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid", "floor",
    "ceil", "trunc", "round", "frac", "sign", "sgn", "square", "reciprocal", "log1p", "expm1",
    "log2", "log10", "exp2", "atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh",
    "erf", "erfc", "positive", "relu", "angle", "conj_physical", "deg2rad", "rad2deg", "logit",
    "isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf", "isreal", "logical_not",
    "bitwise_not", "nan_to_num", "sinc", "lgamma", "digamma", "i0", "erfinv",
)  # fmt: skip
NO_INPLACE = (
    "positive", "conj_physical", "isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf",
    "isreal", "angle",
)  # fmt: skip
NO_OUT = ("positive", "relu", "isnan", "isinf", "isfinite", "isreal")
BINARY = (
    "add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow",
    "atan2", "hypot", "copysign", "xlogy", "float_power", "eq", "ne", "lt", "le", "gt", "ge",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
)  # fmt: skip
TENSOR_ONLY = (
    "maximum", "minimum", "fmax", "fmin", "nextafter", "heaviside", "gcd", "lcm",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^")
REDUCTIONS = (
    "sum", "mean", "prod", "amax", "amin", "all", "any", "nansum", "nanmean", "var", "std",
    "logsumexp", "argmax", "argmin", "max", "min", "count_nonzero", "norm", "aminmax",
)  # fmt: skip
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
NUMBERS = ("0", "1", "2", "3", "-1", "-2", "0.5", "-1.5", "2.0", "0.0", "True")
