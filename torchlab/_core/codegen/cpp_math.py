"""The C++ functions that kernels call: conversions, Python's integer rules, vectorisable
mathematics.

No header is included (a kernel then compiles in a tenth of a second) and every function is
branch-free where its loop should vectorise. The polynomials were fitted here by iteratively
reweighted least squares at Chebyshev points; the fits' own errors are below 2e-8 relative
(float32), so that rounding dominates, and tests/core/codegen/test_cpp_math.py measures the whole.
What has no polynomial calls the C library.
"""

from __future__ import annotations

import re

_T = "template <class T> static inline"

PRELUDE = """\
using int8 = signed char;  using uint8 = unsigned char;  using int16 = short;  using uint16 = unsigned short;
using int32 = int;  using uint32 = unsigned int;  using int64 = long long;  using uint64 = unsigned long long;
"""

_LIBM = (
    "log10", "erfc", "lgamma", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
    "acosh", "atanh",
)  # fmt: skip
_LIBM2 = ("atan2", "hypot", "fmod", "copysign", "fmax", "fmin")


def _libm(name: str, arguments: int, both: bool = True) -> str:
    given = "{0} x" if arguments == 1 else "{0} x, {0} y"
    passed = "x" if arguments == 1 else "x, y"
    double = (
        f"static inline double tl_{name}({given.format('double')}) {{ return"
        f" __builtin_{name}({passed}); }}\n"
    )
    single = (
        f"static inline float tl_{name}({given.format('float')}) {{ return"
        f" __builtin_{name}f({passed}); }}\n"
    )
    return (single if both else "") + double


_MATH: dict[str, str] = {
    "tl_fma": (
        """\
#if defined(__FMA__) || defined(__aarch64__)
static inline float tl_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double tl_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline float tl_fma(float a, float b, float c) { return a * b + c; }
static inline double tl_fma(double a, double b, double c) { return a * b + c; }
#endif
"""
    ),
    "tl_bits": (
        """\
static inline int32 tl_bits(float x) { int32 b; __builtin_memcpy(&b, &x, 4); return b; }
static inline float tl_from_bits(int32 b) { float x; __builtin_memcpy(&x, &b, 4); return x; }
static inline double tl_from_bits(int64 b) { double x; __builtin_memcpy(&x, &b, 8); return x; }
"""
    ),
    "tl_from_bfloat16": (
        """\
static inline float tl_from_bfloat16(uint16 h) { return tl_from_bits((int32)((uint32)h << 16)); }
static inline uint16 tl_to_bfloat16(float x) {  // to the nearest, ties to even; NaN stays NaN
    const uint32 u = (uint32)tl_bits(x);
    return x != x ? (uint16)((u >> 16) | 0x40) : (uint16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
static inline float tl_round_bfloat16(float x) { return tl_from_bfloat16(tl_to_bfloat16(x)); }
"""
    ),
    "tl_from_float16": (
        """\
static inline float tl_from_float16(uint16 h) {
    const uint32 magnitude = (uint32)(h & 0x7fff) << 13, sign = (uint32)(h & 0x8000) << 16;
    const float finite = tl_from_bits((int32)magnitude) * 0x1p112f;
    const uint32 u = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : (uint32)tl_bits(finite);
    return tl_from_bits((int32)(u | sign));
}
static inline uint16 tl_to_float16(float x) {  // to the nearest, ties to even
    const uint32 sign = ((uint32)tl_bits(x) >> 16) & 0x8000, u = (uint32)tl_bits(x) & 0x7fffffff;
    const uint32 small = (uint32)tl_bits(tl_from_bits((int32)u) + 0.5f) - 0x3f000000;  // subnormal
    const uint32 normal = (u + 0xc8000fff + ((u >> 13) & 1)) >> 13;
    const uint32 large = u > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16)(sign | (u >= 0x47800000 ? large : u < 0x38800000 ? small : normal));
}
static inline float tl_round_float16(float x) { return tl_from_float16(tl_to_float16(x)); }
"""
    ),
    "tl_maximum": (
        f"{_T} T tl_maximum(T a, T b) {{ return ((a > b) | (a != a)) ? a : b; }}  // NaN wins\n"
    ),
    "tl_minimum": (
        f"{_T} T tl_minimum(T a, T b) {{ return ((a < b) | (a != a)) ? a : b; }}  // NaN wins\n"
    ),
    "tl_square": f"{_T} T tl_square(T x) {{ return x * x; }}\n",
    "tl_cube": f"{_T} T tl_cube(T x) {{ return x * x * x; }}\n",
    "tl_abs": (
        f"{_T} T tl_abs(T x) {{ return x < 0 ? -x : x; }}\n"
        "static inline float tl_abs(float x) { return __builtin_fabsf(x); }\n"
        "static inline double tl_abs(double x) { return __builtin_fabs(x); }\n"
    ),
    "tl_sign": (
        f"{_T} T tl_sign(T x) {{ return x > 0 ? (T)1 : x < 0 ? (T)-1 : x != x ? x : (T)0; }}\n"
    ),
    "tl_is_finite": f"{_T} bool tl_is_finite(T x) {{ return x - x == 0; }}\n",
    "tl_is_inf": f"{_T} bool tl_is_inf(T x) {{ return (x == x) & (x - x != 0); }}\n",
    "tl_error": "static int32 tl_error = 0;  // set by what the processor would trap on\n",
    "tl_floordiv": (
        f"""\
{_T} T tl_floordiv(T a, T b) {{
    if (b == 0) {{ tl_error = 1; return 0; }}
    if (b == (T)-1 && (T)-1 < 0) return (T)(0 - (uint64)a);
    const T q = a / b;
    return (a % b != 0) & ((a < 0) != (b < 0)) ? q - 1 : q;
}}
static inline double tl_floordiv(double a, double b) {{
    if (b == 0) return a / b;
    const double r = __builtin_fmod(a, b);
    const double q = (a - r) / b - ((r != 0) & ((r < 0) != (b < 0)) ? 1.0 : 0.0);
    const double f = __builtin_floor(q);
    return q == 0 ? __builtin_copysign(0.0, a / b) : q - f > 0.5 ? f + 1 : f;
}}
static inline float tl_floordiv(float a, float b) {{
    if (b == 0) return a / b;
    const float r = __builtin_fmodf(a, b);
    const float q = (a - r) / b - ((r != 0) & ((r < 0) != (b < 0)) ? 1.0f : 0.0f);
    const float f = __builtin_floorf(q);
    return q == 0 ? __builtin_copysignf(0.0f, a / b) : q - f > 0.5f ? f + 1 : f;
}}
"""
    ),
    "tl_mod": (
        f"""\
{_T} T tl_mod(T a, T b) {{
    if (b == 0) {{ tl_error = 1; return 0; }}
    if (b == (T)-1 && (T)-1 < 0) return 0;
    const T r = a % b;
    return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;
}}
static inline double tl_mod(double a, double b) {{
    const double r = __builtin_fmod(a, b);
    return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;
}}
static inline float tl_mod(float a, float b) {{
    const float r = __builtin_fmodf(a, b);
    return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r;
}}
"""
    ),
    "tl_lshift": (
        f"{_T} T tl_lshift(T a, T b) {{ return b < 0 || b >= (T)(8 * sizeof(T)) ? (T)0 :"
        " (T)((uint64)a << b); }\n"
    ),
    "tl_rshift": (
        f"{_T} T tl_rshift(T a, T b) {{"
        " return b < 0 || b >= (T)(8 * sizeof(T)) ? (T)(a < 0 ? -1 : 0) : (T)(a >> b); }\n"
    ),
    "tl_pow": f"""\
{_T} T tl_pow(T base, T exponent) {{
    if (exponent < 0) return base == 1 ? (T)1 : base == (T)-1 ? (exponent % 2 ? (T)-1 : (T)1) : (T)0;
    T result = 1;
    for (; exponent; exponent /= 2, base *= base)
        if (exponent % 2) result *= base;
    return result;
}}
"""
    + _libm("pow", 2),
    "tl_round": _libm("rint", 1).replace("tl_rint", "tl_round"),
    **{f"tl_{name}": _libm(name, 1) for name in ("floor", "ceil", "trunc", "sqrt", *_LIBM)},
    **{f"tl_{name}": _libm(name, 2) for name in _LIBM2},
    "tl_rsqrt": (
        "static inline float tl_rsqrt(float x) { return 1.0f / tl_sqrt(x); }\n"
        "static inline double tl_rsqrt(double x) { return 1.0 / tl_sqrt(x); }\n"
    ),
    "tl_ldexp": (
        """\
// x · 2^n in two steps, so that results near the largest and the subnormal numbers come out right
static inline float tl_ldexp(float x, float n) {
    const int32 k = (int32)n, half = k >> 1;
    return x * tl_from_bits((half + 127) << 23) * tl_from_bits((k - half + 127) << 23);
}
static inline double tl_ldexp(double x, double n) {
    const int64 k = (int64)n, half = k >> 1;
    return x * tl_from_bits((half + 1023) << 52) * tl_from_bits((k - half + 1023) << 52);
}
static inline float tl_power2(float n) { return tl_from_bits(((int32)n + 127) << 23); }
static inline double tl_power2(double n) { return tl_from_bits(((int64)n + 1023) << 52); }
"""
    ),
    "tl_expm1_core": (
        """\
// exp(r) - 1 for |r| <= ln(2)/2: a fitted polynomial (float), the Taylor series (double)
static inline float tl_expm1_core(float r) {
    float p = 0.00139464939f;
    p = tl_fma(p, r, 0.00836661085f);
    p = tl_fma(p, r, 0.0416662805f);
    p = tl_fma(p, r, 0.166665435f);
    p = tl_fma(p, r, 0.5f);
    return tl_fma(p, r * r, r);
}
static inline double tl_expm1_core(double r) {
    double p = 1.0 / 6227020800;
    p = tl_fma(p, r, 1.0 / 479001600);
    p = tl_fma(p, r, 1.0 / 39916800);
    p = tl_fma(p, r, 1.0 / 3628800);
    p = tl_fma(p, r, 1.0 / 362880);
    p = tl_fma(p, r, 1.0 / 40320);
    p = tl_fma(p, r, 1.0 / 5040);
    p = tl_fma(p, r, 1.0 / 720);
    p = tl_fma(p, r, 1.0 / 120);
    p = tl_fma(p, r, 1.0 / 24);
    p = tl_fma(p, r, 1.0 / 6);
    p = tl_fma(p, r, 0.5);
    return tl_fma(p, r * r, r);
}
// r = x - n · ln 2, with ln 2 in two parts
static inline float tl_exp_rest(float x, float n) {
    return tl_fma(n, 2.12194440e-4f, tl_fma(n, -0.693359375f, x));
}
static inline double tl_exp_rest(double x, double n) {
    return tl_fma(n, -1.42860682030941723212e-6, tl_fma(n, -0.693145751953125, x));
}
"""
    ),
    "tl_exp": (
        """\
static inline float tl_exp(float x) {  // 2^n · exp(r)
    x = x > 89.0f ? 89.0f : x < -104.5f ? -104.5f : x;
    const float n = __builtin_rintf(x * 1.44269504f);
    return tl_ldexp(1.0f + tl_expm1_core(tl_exp_rest(x, n)), n);
}
static inline double tl_exp(double x) {
    x = x > 710.0 ? 710.0 : x < -746.0 ? -746.0 : x;
    const double n = __builtin_rint(x * 1.4426950408889634);
    return tl_ldexp(1.0 + tl_expm1_core(tl_exp_rest(x, n)), n);
}
"""
    ),
    "tl_exp2": (
        """\
static inline float tl_exp2(float x) {
    x = x > 129.0f ? 129.0f : x < -151.0f ? -151.0f : x;
    const float n = __builtin_rintf(x);
    return tl_ldexp(1.0f + tl_expm1_core((x - n) * 0.693147181f), n);
}
static inline double tl_exp2(double x) { return __builtin_exp2(x); }
"""
    ),
    "tl_expm1_bounded": (
        """\
// exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), for -40 <= x <= 60
static inline float tl_expm1_bounded(float x) {
    const float n = __builtin_rintf(x * 1.44269504f), power = tl_power2(n);
    return tl_fma(power, tl_expm1_core(tl_exp_rest(x, n)), power - 1.0f);
}
static inline double tl_expm1_bounded(double x) {
    const double n = __builtin_rint(x * 1.4426950408889634), power = tl_power2(n);
    return tl_fma(power, tl_expm1_core(tl_exp_rest(x, n)), power - 1.0);
}
"""
    ),
    "tl_expm1": (
        """\
static inline float tl_expm1(float x) {
    const float low = tl_expm1_bounded(x < -30.0f ? -30.0f : x > 20.0f ? 20.0f : x);
    return x > 20.0f ? tl_exp(x) : x == 0 ? x : low;
}
static inline double tl_expm1(double x) { return __builtin_expm1(x); }
"""
    ),
    "tl_tanh": (
        """\
static inline float tl_tanh(float x) {  // (exp(2x) - 1) / (exp(2x) + 1)
    const float y = 2.0f * __builtin_fabsf(x), e = tl_expm1_bounded(y > 20.0f ? 20.0f : y);
    return __builtin_copysignf(e / (e + 2.0f), x);
}
static inline double tl_tanh(double x) {
    const double y = 2.0 * __builtin_fabs(x), e = tl_expm1_bounded(y > 40.0 ? 40.0 : y);
    return __builtin_copysign(e / (e + 2.0), x);
}
"""
    ),
    "tl_sigmoid": (
        """\
static inline float tl_sigmoid(float x) {  // never through exp of a large number
    const float z = tl_exp(-__builtin_fabsf(x));
    return (x < 0 ? z : 1.0f) / (1.0f + z);
}
static inline double tl_sigmoid(double x) {
    const double z = tl_exp(-__builtin_fabs(x));
    return (x < 0 ? z : 1.0) / (1.0 + z);
}
"""
    ),
    "tl_erf": (
        """\
static inline float tl_erf(float x) {
    const float t = __builtin_fabsf(x), s = x * x, u = t > 4.1f ? 4.1f : t;
    float a = -6.02180604e-4f;  // erf(x) = x + x a(x²) up to 0.92
    a = tl_fma(a, s, 4.99960128e-3f);
    a = tl_fma(a, s, -2.67712828e-2f);
    a = tl_fma(a, s, 0.112819552f);
    a = tl_fma(a, s, -0.376125067f);
    a = tl_fma(a, s, 0.128379151f);
    float b = -2.13533017e-4f;  // beyond: 1 - exp(-t - t b(t))
    b = tl_fma(b, u, 3.21131852e-3f);
    b = tl_fma(b, u, -2.28786133e-2f);
    b = tl_fma(b, u, 0.105244666f);
    b = tl_fma(b, u, 0.635730922f);
    b = tl_fma(b, u, 0.128510758f);
    const float far = __builtin_copysignf(1.0f - tl_exp(-tl_fma(b, u, u)), x);
    return t > 0.92f ? far : tl_fma(a, x, x);
}
static inline double tl_erf(double x) { return __builtin_erf(x); }
"""
    ),
    "tl_log_parts": (
        """\
// x = m · 2^e with m in [sqrt(1/2), sqrt(2)): returns log(m), and e
static inline float tl_log_parts(float x, float& e) {
    const bool subnormal = x < 1.17549435e-38f;
    const int32 bits = tl_bits(subnormal ? x * 0x1p23f : x), k = (bits - 0x3f3504f3) >> 23;
    e = (float)(subnormal ? k - 23 : k);
    const float f = tl_from_bits(bits - (int32)((uint32)k << 23)) - 1.0f;
    float p = -0.0785954595f;  // log(1 + f) = f - f²/2 + f³ p(f)
    p = tl_fma(p, f, 0.128816217f);
    p = tl_fma(p, f, -0.131287679f);
    p = tl_fma(p, f, 0.141811967f);
    p = tl_fma(p, f, -0.166245535f);
    p = tl_fma(p, f, 0.200022861f);
    p = tl_fma(p, f, -0.250008106f);
    p = tl_fma(p, f, 0.333333164f);
    return tl_fma(f * f, tl_fma(p, f, -0.5f), f);
}
static inline float tl_log_special(float x, float result) {  // what the formula does not reach
    return x > 0 ? (x < __builtin_inff() ? result : x) : x == 0 ? -__builtin_inff() :
    __builtin_nanf("");
}
"""
    ),
    "tl_log": (
        """\
static inline float tl_log(float x) {
    float e;
    const float log_m = tl_log_parts(x, e);
    return tl_log_special(x, tl_fma(e, 0.693359375f, tl_fma(e, -2.12194440e-4f, log_m)));
}
static inline double tl_log(double x) { return __builtin_log(x); }
"""
    ),
    "tl_log2": (
        """\
static inline float tl_log2(float x) {
    float e;
    const float log_m = tl_log_parts(x, e);
    return tl_log_special(x, tl_fma(log_m, 1.44269504f, e));
}
static inline double tl_log2(double x) { return __builtin_log2(x); }
"""
    ),
    "tl_log1p": (
        """\
static inline float tl_log1p(float x) {  // log(u), corrected for the rounding of u = 1 + x
    const float u = 1.0f + x, d = u - 1.0f;
    return (d == 0) | (x == __builtin_inff()) ? x : tl_log(u) * (x / d);
}
static inline double tl_log1p(double x) { return __builtin_log1p(x); }
"""
    ),
}


_OWNER = {
    function: name
    for name, text in _MATH.items()
    for function in re.findall(
        r"^(?:template <class T> )?static (?:inline )?\w+ (tl_\w+)", text, re.MULTILINE
    )
}


def prelude(code: str) -> str:
    """The type names and those of the functions above that `code` needs, in order."""
    needed: set[str] = set()
    todo = set(re.findall(r"\btl_\w+", code))
    while todo:
        name = _OWNER.get(todo.pop())
        if name is not None and name not in needed:
            needed.add(name)
            todo |= set(re.findall(r"\btl_\w+", _MATH[name]))
    return PRELUDE + "".join("\n" + text for name, text in _MATH.items() if name in needed)
