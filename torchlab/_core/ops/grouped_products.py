"""Matrix products by groups, and bilinear forms.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.grouped_mm.html,
https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.bilinear.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import bfloat16, float16, float32, int32

_TYPES = (float32, bfloat16, float16)


def _accepted(name: str, x: Any) -> None:
    if x.dtype not in _TYPES:
        raise RuntimeError(
            f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {x.dtype.scalar_name}"
        )


def _laid_out(x: Any) -> None:
    """PyTorch's kernels want rows (or columns) in one piece, each at a multiple of 16 bytes."""
    m, n = x.shape[-2:]
    across, along = x.stride()[-2:]
    if along == 1 and across >= max(1, n):
        step = across
    elif across == 1 and along >= max(1, m):
        step = along
    else:
        raise RuntimeError(
            f"Invalid strides/sizes, got {list(x.stride())} for strides and {list(x.shape)} for"
            " sizes"
        )
    if step * x.element_size() % 16:
        raise RuntimeError("strides should be multiple of 16 bytes")


def _checked(mat_a: Any, mat_b: Any, offs: Any, bias: Any, out_dtype: Any) -> None:
    _accepted("mat_a", mat_a)
    _accepted("mat_b", mat_b)
    a, b = mat_a.ndim, mat_b.ndim
    if a not in (2, 3) or b not in (2, 3):
        raise RuntimeError(f"grouped_mm: the matrices have to be 2-d or 3-d, got {a}-d and {b}-d")
    _laid_out(mat_a)
    _laid_out(mat_b)
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if a == b == 3 and mat_a.shape[0] != mat_b.shape[0]:
        raise RuntimeError("batched dimension has to match")
    if (offs is None) != (a == b == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None:
        if offs.ndim != 1:
            raise RuntimeError("offs has to be 1D")
        if offs.dtype is not int32:
            raise RuntimeError("Offsets have to be int32")
        many = mat_a if a == 3 else mat_b if b == 3 else None
        if many is not None and offs.shape[0] != many.shape[0]:
            raise RuntimeError("matrix batch sizes have to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


def _ends(offs: Any, total: int) -> list[int]:
    """The ends of the groups, checked."""
    ends = [int(n) for n in offs.tolist()]
    if any(b < a for a, b in zip([0, *ends], ends)) or (ends and ends[-1] > total):
        raise RuntimeError(
            f"grouped_mm: offs must not fall and end at most at {total}, but is {ends}"
        )
    return ends


def _parts(x: Any, dim: int, ends: list[int]) -> list[Any]:
    starts = [0, *ends[:-1]]
    return [aten.narrow(x, dim, a, b - a) for a, b in zip(starts, ends)]


@face("grouped_mm", method=False, spaces=("nn.functional",))
def grouped_mm(
    mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """One matrix product for each group.

    (G, M, K), (G, K, N) → (G, M, N). Where a matrix is 2-d, `offs` holds where each group ends:
    (total, K), (G, K, N) → (total, N); (G, M, K), (K, total) → (M, total); (M, total), (total, N) →
    (G, M, N), summed over each group's part. What lies behind the last group is zero.
    """
    return _grouped(mat_a, mat_b, offs, bias, out_dtype)


@face("_grouped_mm", method=False)
def _grouped_mm(
    self: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """The name that `torch.nn.functional.grouped_mm` has as an operator."""
    return _grouped(self, mat2, offs, bias, out_dtype)


def _grouped(mat_a: Any, mat_b: Any, offs: Any, bias: Any, out_dtype: Any) -> Any:
    _checked(mat_a, mat_b, offs, bias, out_dtype)
    a, b = mat_a._a.ndim, mat_b._a.ndim
    if a == b == 3:
        r = aten.bmm(mat_a, mat_b)
    elif a == b == 2:
        ends = _ends(offs, mat_a._a.shape[1])
        pairs = zip(_parts(mat_a, 1, ends), _parts(mat_b, 0, ends), strict=True)
        r = aten.stack([aten.mm(x, y) for x, y in pairs], 0)
    else:
        flat, many, dim = (mat_a, mat_b, 0) if a == 2 else (mat_b, mat_a, 1)
        total = flat._a.shape[dim]
        ends = _ends(offs, total)
        pieces = [
            aten.mm(x, y) if a == 2 else aten.mm(y, x)
            for x, y in zip(_parts(flat, dim, ends), aten.unbind(many, 0), strict=True)
        ]
        rest = total - (ends[-1] if ends else 0)
        if rest:
            shape = (rest, mat_b._a.shape[-1]) if a == 2 else (mat_a._a.shape[-2], rest)
            pieces.append(aten.new_zeros(aten.detach(mat_a), shape))
        r = aten.cat(pieces, dim)
    return r


@face(
    "bilinear",
    method=False,
    spaces=("torch", "nn.functional"),
    autocast="off:cpu promote:accelerator",
)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1ᵀ A input2 + b for each output: (…, in1), (…, in2), weight (out, in1, in2) → (…,
    out)."""
    x, y, w = input1._a.shape, input2._a.shape, weight._a.shape
    if len(x) != len(y) or x[:-1] != y[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(x)} and {list(y)}"
        )
    if len(w) != 3 or (x[-1], y[-1]) != tuple(w[1:]):
        raise RuntimeError(
            "bilinear(): the sizes of input1 and input2 do not match weight (out, in1, in2): got "
            f"{list(x)}, {list(y)} and {list(w)}"
        )
    if bias is not None and bias._a.shape != w[:1]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight: got {list(bias._a.shape)} and {list(w)}"
        )
    left = aten.matmul(aten.unsqueeze(aten.unsqueeze(input1, -2), -2), weight)  # (…, out, 1, in2)
    r = aten.squeeze(aten.matmul(left, aten.unsqueeze(aten.unsqueeze(input2, -2), -1)), (-1,))
    r = aten.squeeze(r, -1)
    return r if bias is None else r + bias
