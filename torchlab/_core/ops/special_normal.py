"""The normal distribution's functions and the error function's relatives.

Source of the semantics: https://docs.pytorch.org/docs/2.13/special.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import unary
from torchlab._core.ops._special import floating, scipy_kernel, special
from torchlab._core.ops.kernels import into


def _erfinv(xp: Any, x: Any, out: Any = None) -> Any:
    # SciPy's own float32 form is off by up to 3 units in the last place, PyTorch's (MKL's) by none.
    # As the inverse of the normal distribution it makes initial weights, whose bits then differ.
    wide = xp.asarray(x, "float64") if x.dtype == "float32" else x
    r = xp.copysign(special.erfinv(wide), wide)  # SciPy forgets the sign of zero
    return into(r.astype(x.dtype, copy=False), out)


unary(
    "erfinv",
    _erfinv,
    promote=floating("erfinv_vml_cpu"),
    vjp={"self": "g * (0.886226925452758 * exp(square(erfinv(self))))"},  # √π / 2
    spaces=("torch", "special"),
    doc="The inverse of `erf`: ±∞ at ±1, NaN outside [−1, 1].",
    autocast="float32:accelerator",
)


def _declare(
    name: str,
    scipy_name: str,
    vjp: str,
    doc: str,
    half: bool = False,
    tags: tuple[str, ...] = ("pointwise",),
) -> Any:
    parts = "".join(p.capitalize() for p in name.split("_"))
    return unary(
        name,
        scipy_kernel(scipy_name),
        promote=floating(f"{name}_cpu", half=half),
        spaces=("special",),
        method=False,
        inplace=False,
        vjp={"self": vjp},
        grad_name=f"Special{parts}Backward0",
        tags=tags,
        doc=doc,
    )


_declare(
    "erfcx",
    "erfcx",
    "g * (2 * self * result - 1.1283791670955126)",  # 2 / √π
    "exp(x²) · erfc(x).",
)
_declare("entr", "entr", "-g * (1 + log(self))", "−x · ln x; 0 at 0, −∞ below.", half=True)
_declare(
    "ndtr",
    "ndtr",
    "g * (0.3989422804014327 * exp(-0.5 * self * self))",  # 1 / √(2π)
    "The standard normal distribution's cumulative distribution function.",
    half=True,
    tags=("pointwise", "out_copied"),
)
_declare(
    "ndtri",
    "ndtri",
    "g * (2.5066282746310002 * exp(0.5 * result * result))",  # √(2π)
    "The inverse of `ndtr`.",
)
_declare(
    "log_ndtr",
    "log_ndtr",
    "g * (0.7978845608028654 / erfcx(-0.7071067811865476 * self))",  # √(2/π), 1/√2
    "The logarithm of `ndtr`, exact far below 0.",
)
