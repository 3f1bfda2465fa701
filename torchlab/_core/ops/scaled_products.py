"""Products of matrices of 8-bit floats that carry their scales with them.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.scaled_mm.html
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import composite, face
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

_EIGHT_BITS = frozenset(
    d
    for d in vars(dt).values()
    if isinstance(d, dt.dtype) and d.is_floating_point and d.itemsize == 1
)


class ScalingType(Enum):
    """How a matrix was scaled: as a whole, by row, or in blocks (which the CPU has not)."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """In what order the scales of blocks lie."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


for _public in (ScalingType, SwizzleType):
    _public.__qualname__ = _public.__name__ = "_" + _public.__name__
    _public.__module__ = "torchlab.nn.functional"


@composite(
    "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a,"
    " Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype,"
    " int[] contraction_dim=[], bool use_fast_accum=False) -> Tensor",
    method=False,
)
def _scaled_mm_v2(
    self: Any, mat2: Any, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any,
    swizzle_b: Any, bias: Any, out_dtype: Any, contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Any:  # fmt: skip
    """(M, K), (K, N) → (M, N): the product of the matrices times their scales; recipes and swizzles
    are the numbers of `ScalingType` and `SwizzleType`."""
    _shapes_checked(self, mat2)
    by_tensor, by_row = ScalingType.TensorWise.value, ScalingType.RowWise.value
    recipe = list(recipe_a)
    fits = recipe == list(recipe_b) and len(scale_a) == len(scale_b) == 1
    if fits and recipe == [by_tensor]:
        fits = _kind_of_scales(self, mat2, scale_a[0], scale_b[0]) == by_tensor
    elif fits and recipe == [by_row]:
        fits = _kind_of_scales(self, mat2, scale_a[0], scale_b[0]) is not None
        if fits:
            _by_row_checked(self, mat2, scale_a[0], scale_b[0])
    else:
        fits = False
    if not fits:
        raise _invalid(self, mat2)
    return _product(self, mat2, scale_a[0], scale_b[0], bias, out_dtype)


@composite(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None,"
    " Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    method=False,
    out=True,
)
def _scaled_mm(
    self: Any, mat2: Any, scale_a: Any, scale_b: Any, bias: Any = None, scale_result: Any = None,
    out_dtype: Any = None, use_fast_accum: bool = False,
) -> Any:  # fmt: skip
    """(M, K), (K, N) → (M, N): the product of the matrices times their scales: numbers, or (M, 1)
    and (1, N). `scale_result` is taken and not used, as on PyTorch's CPU."""
    _shapes_checked(self, mat2)
    if _kind_of_scales(self, mat2, scale_a, scale_b) is None:
        raise _invalid(self, mat2)
    return _product(self, mat2, scale_a, scale_b, bias, out_dtype)


def _shapes_checked(a: Any, b: Any) -> None:
    for name, x in (("mat1", a), ("mat2", b)):
        if x._a.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if a._a.shape[1] != b._a.shape[0]:
        shapes = f"{a._a.shape[0]}x{a._a.shape[1]} and {b._a.shape[0]}x{b._a.shape[1]}"
        raise ValueError(f"mat_a and mat_b shapes cannot be multiplied ({shapes})")


def _kind_of_scales(a: Any, b: Any, scale_a: Any, scale_b: Any) -> int | None:
    """The number of the ScalingType that the scales' shapes tell; None: they fit none."""
    floats = all(s._k.dtype is dt.float32 for s in (scale_a, scale_b))
    if not floats or not all(x._k.dtype in _EIGHT_BITS for x in (a, b)):
        return None
    if scale_a._a.size == scale_b._a.size == 1:
        return ScalingType.TensorWise.value
    rows = scale_a._a.shape == (a._a.shape[0], 1) and scale_b._a.shape == (1, b._a.shape[1])
    dense = scale_a.is_contiguous() and scale_b.is_contiguous()
    return ScalingType.RowWise.value if rows and dense else None


def _by_row_checked(a: Any, b: Any, scale_a: Any, scale_b: Any) -> None:
    """Scales of one element are numbers, and so no scales of rows."""
    for name, s, shape in (
        ("scale_a", scale_a, [a._a.shape[0], 1]),
        ("scale_b", scale_b, [1, b._a.shape[1]]),
    ):
        if s._a.ndim == 0:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        if list(s._a.shape) != shape:
            raise ValueError(f"{name} must have shape {shape}, got {list(s._a.shape)}")


def _invalid(a: Any, b: Any) -> ValueError:
    m, n = a._a.shape[0], b._a.shape[1]
    return ValueError(
        "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales"
        " should be float and singletons.\n- For RowWise scaling, a and b should be float8, scales"
        f" should be float, scale_a should be ({m}, 1) and scale_b should be (1, {n}), and both"
        f" should be contiguous.\nGot mat_a of {a.dtype} {list(a.shape)} and mat_b of {b.dtype}"
        f" {list(b.shape)}"
    )


def _product(a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any, out_dtype: Any) -> Any:
    """In float32; rounded once at the end."""
    n = b._a.shape[1]
    if bias is not None and bias.numel() != n:
        raise RuntimeError(f"Bias must be size {n} but got {bias.numel()}")
    x, y = (aten.to(aten.detach(t), dt.float32) for t in (a, b))
    p, q = (aten.detach(s) for s in (scale_a, scale_b))
    if p._a.size == q._a.size == 1:
        p, q = aten.reshape(p, ()), aten.reshape(q, ())
    r = aten.mm(x * p, y * q)
    if bias is not None:
        r = r + aten.to(aten.detach(bias), dt.float32)
    return aten.to(r, a._k.dtype if out_dtype is None else out_dtype)


@face("scaled_mm", method=False, spaces=("nn.functional",))
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    output_dtype: Any = dt.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """(M, K), (K, N) → (M, N): the product of matrices of 8-bit floats times their scales, in
    `output_dtype` (None: that of `mat_a`).

    scale_recipe_a, scale_recipe_b: `ScalingType.TensorWise` (scales of one element) or
    `ScalingType.RowWise` ((M, 1) and (1, N)); ValueError for others, which are of GPUs.
    """
    return aten._scaled_mm_v2(
        mat_a,
        mat_b,
        _listed(scale_a),
        _numbers(scale_recipe_a),
        _numbers(swizzle_a),
        _listed(scale_b),
        _numbers(scale_recipe_b),
        _numbers(swizzle_b),
        bias,
        output_dtype,
        contraction_dim,
        use_fast_accum,
    )


def _listed(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def _numbers(x: Any) -> list[int]:
    return [e.value for e in _listed(x)]
