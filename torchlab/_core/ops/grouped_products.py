"""Matrix products by groups, and bilinear forms.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.grouped_mm.html,
https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.bilinear.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten


def _ends(offs: Any, total: int) -> list[int]:
    """The ends of the groups, checked."""
    if offs is None:
        raise RuntimeError("grouped_mm: Have to provide offsets if one of the matrices is 2-d")
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
    a, b = mat_a._a.ndim, mat_b._a.ndim
    if a not in (2, 3) or b not in (2, 3):
        raise RuntimeError(f"grouped_mm: the matrices have to be 2-d or 3-d, got {a}-d and {b}-d")
    if mat_a._a.shape[-1] != mat_b._a.shape[-2]:
        raise RuntimeError(
            "grouped_mm: contraction dimension of mat_a and mat_b must match, got "
            f"{list(mat_a._a.shape)} and {list(mat_b._a.shape)}"
        )
    if a == b == 3:
        if offs is not None:
            raise RuntimeError("grouped_mm: offs are only for matrices of which one is 2-d")
        r = aten.bmm(mat_a, mat_b)
    elif a == b == 2:
        ends = _ends(offs, mat_a._a.shape[1])
        pairs = zip(_parts(mat_a, 1, ends), _parts(mat_b, 0, ends), strict=True)
        r = aten.stack([aten.mm(x, y) for x, y in pairs], 0)
    else:
        flat, many, dim = (mat_a, mat_b, 0) if a == 2 else (mat_b, mat_a, 1)
        total = flat._a.shape[dim]
        ends = _ends(offs, total)
        if len(ends) != many._a.shape[0]:
            raise RuntimeError(
                f"grouped_mm: offs has {len(ends)} groups, but there are {many._a.shape[0]} "
                "matrices"
            )
        pieces = [
            aten.mm(x, y) if a == 2 else aten.mm(y, x)
            for x, y in zip(_parts(flat, dim, ends), aten.unbind(many, 0), strict=True)
        ]
        rest = total - (ends[-1] if ends else 0)
        if rest:
            shape = (rest, mat_b._a.shape[-1]) if a == 2 else (mat_a._a.shape[-2], rest)
            pieces.append(aten.new_zeros(aten.detach(mat_a), shape))
        r = aten.cat(pieces, dim)
    if bias is not None:
        r = r + bias
    return r if out_dtype is None else aten.to(r, out_dtype)


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
