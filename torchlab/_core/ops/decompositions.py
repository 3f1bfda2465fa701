"""Determinants, inverses, solutions and factorisations, in batches. LAPACK does the work.

Source of the semantics: https://docs.pytorch.org/docs/2.13/linalg.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.errors import LinAlgError

_LINALG = ("linalg",)


def _square(name: str, a: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by"
            f" {a.shape[-1]} matrices"
        )
    if a.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {a.dtype.name}"
        )


def _lapack(name: str, fn: Any, *args: Any) -> Any:
    try:
        return fn(*args)
    except np.linalg.LinAlgError as e:
        what = (
            "The factorization could not be completed because the input is not positive-definite"
            if (name == "linalg.cholesky")
            else (
                "The diagonal element 1 is zero, the inversion could not be completed because the"
                " input matrix is singular."
            )
        )
        raise LinAlgError(f"{name}: {what} ({e})") from None


@vjp_helper
def det_backward(g: Any, a: Any, result: Any) -> Any:
    """d det(A) / dA = det(A) · A⁻ᴴ; singular matrices go through the cofactors."""
    if bool((np.asarray(result._a) == 0).any()):
        return cofactor_backward(g, a)
    k = aten.unsqueeze(aten.unsqueeze(g * aten.conj(result), -1), -1)
    return k * aten.transpose(aten.conj(aten.linalg_inv(a)), -2, -1)


def cofactor_backward(g: Any, a: Any) -> Any:
    """The gradient of the determinant from minors, for matrices that have no inverse."""
    n = a._a.shape[-1]
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            keep_i = [r for r in range(n) if r != i]
            keep_j = [c for c in range(n) if c != j]
            minor = aten.index_select(
                aten.index_select(a, -2, aten.tensor(keep_i, dtype=_int64())),
                -1,
                aten.tensor(keep_j, dtype=_int64()),
            )
            row.append(aten.linalg_det(minor) * (-1) ** (i + j))
        rows.append(aten.stack(row, -1))
    return aten.unsqueeze(aten.unsqueeze(g, -1), -1) * aten.conj(aten.stack(rows, -2))


def _int64() -> Any:
    return aten.arange(0).dtype


@op(
    "linalg_det(Tensor A) -> Tensor",
    method=False,
    public=False,
    vjp={"A": "det_backward(g, A, result)"},
    meta=lambda a: MetaArray(a.shape[:-2], a.dtype),
    grad_name="LinalgDetBackward0",
)
def linalg_det(xp: Any, a: Any) -> Any:
    """The determinants of square matrices: (…, n, n) → (…)."""
    _square("linalg.det", a)
    return np.asarray(xp.linalg.det(a))


@op(
    "linalg_inv(Tensor A) -> Tensor",
    method=False,
    public=False,
    vjp={"A": "inv_backward(g, result)"},
    meta=lambda a: MetaArray(a.shape, a.dtype),
    grad_name="LinalgInvExBackward0",
)
def linalg_inv(xp: Any, a: Any) -> Any:
    """The inverses of square matrices."""
    _square("linalg.inv", a)
    return _lapack("linalg.inv", xp.linalg.inv, a)


@vjp_helper
def inv_backward(g: Any, inverse: Any) -> Any:
    h = aten.transpose(aten.conj(inverse), -2, -1)
    return -(h @ g @ h)


@op(
    "linalg_solve(Tensor A, Tensor B) -> Tensor",
    method=False,
    public=False,
    vjp={"A": "-solve_outer(solve_adjoint(A, g), result)", "B": "solve_adjoint(A, g)"},
    meta=lambda a, b: MetaArray(b.shape, a.dtype),
    grad_name="LinalgSolveExBackward0",
)
def linalg_solve(xp: Any, a: Any, b: Any) -> Any:
    """X with A X = B: (…, n, n), (…, n, k) → (…, n, k); a vector B gives a vector."""
    _square("linalg.solve", a)
    if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        return _lapack("linalg.solve", xp.linalg.solve, a, b[..., None])[..., 0]
    return _lapack("linalg.solve", xp.linalg.solve, a, b)


@vjp_helper
def solve_adjoint(a: Any, g: Any) -> Any:
    return aten.linalg_solve(aten.transpose(aten.conj(a), -2, -1), g)


@vjp_helper
def solve_outer(gb: Any, x: Any) -> Any:
    """gB Xᴴ, for vectors an outer product."""
    if x._a.ndim == 1:
        return aten.unsqueeze(gb, -1) * aten.conj(aten.unsqueeze(x, 0))
    return gb @ aten.transpose(aten.conj(x), -2, -1)


@op(
    "linalg_cholesky(Tensor self) -> Tensor",
    method=False,
    public=False,
    vjp={"self": "cholesky_backward(g, result)"},
    meta=lambda a: MetaArray(a.shape, a.dtype),
    grad_name="LinalgCholeskyExBackward0",
)
def linalg_cholesky(xp: Any, a: Any) -> Any:
    """L with A = L Lᴴ, lower triangular."""
    _square("linalg.cholesky", a)
    return _lapack("linalg.cholesky", xp.linalg.cholesky, a)


@vjp_helper
def cholesky_backward(g: Any, factor: Any) -> Any:
    """Murray (2016), "Differentiation of the Cholesky decomposition",
    https://arxiv.org/abs/1602.07527"""
    h = aten.transpose(aten.conj(factor), -2, -1)
    phi = aten.tril(h @ g)
    phi = phi - 0.5 * aten.diag_embed(aten.diagonal(phi, 0, -2, -1))
    s = aten.linalg_solve(h, phi)
    s = aten.transpose(
        aten.conj(aten.linalg_solve(h, aten.transpose(aten.conj(s), -2, -1))), -2, -1
    )
    return 0.5 * (s + aten.transpose(aten.conj(s), -2, -1))


def _linalg_face(name: str, target: Any, doc: str, *, torch_name: str | None = None) -> None:
    def call(self: Any, *args: Any, out: Any = None) -> Any:
        r = target.function(self, *args)
        return r if out is None else aten.copy_(aten.resize_(out, r.shape), r)

    call.__doc__ = doc
    face(name, method=False, spaces=_LINALG)(call)


_linalg_face("det", linalg_det, "The determinants of square matrices.")
_linalg_face("inv", linalg_inv, "The inverses of square matrices.")
_linalg_face("solve", linalg_solve, "X with A X = B.")
_linalg_face("cholesky", linalg_cholesky, "L with A = L Lᴴ.")
face("det")(lambda self: linalg_det.function(self))
face("inverse")(lambda self: linalg_inv.function(self))


@composite("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def addmv(self: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    """beta · self + alpha · mat @ vec."""
    return beta * self + alpha * aten.mv(mat, vec)


@composite(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"
)
def baddbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """beta · self + alpha · batch1 @ batch2."""
    return beta * self + alpha * aten.bmm(batch1, batch2)


def _operands(operands: Any) -> list[Any]:
    return (
        list(operands[0])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple))
        else list(operands)
    )


@face("einsum", method=False)
def einsum(equation: str, *operands: Any) -> Any:
    """Einstein's summation, contracted from left to right as products of matrices."""
    tensors = _operands(operands)
    inputs, output = _parse(equation, tensors)
    labels, result = inputs[0], tensors[0]
    labels, result = _diagonals(labels, result)
    for i, t in enumerate(tensors[1:], 1):
        other, t = _diagonals(inputs[i], t)
        later = set("".join(inputs[i + 1 :])) | set(output)
        labels, result = _contract(labels, result, other, t, later)
    gone = [d for d, c in enumerate(labels) if c not in output]
    if gone:
        result = aten.sum(result, gone)
        labels = "".join(c for c in labels if c in output)
    return aten.permute(result, tuple(labels.index(c) for c in output))


def _parse(equation: str, tensors: list[Any]) -> tuple[list[str], str]:
    text = equation.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors):
        raise RuntimeError(
            f"einsum(): the number of operands ({len(tensors)}) does not match the equation's"
            f" ({len(inputs)}): '{equation}'"
        )
    extra = 0
    for labels, t in zip(inputs, tensors, strict=True):
        extra = max(extra, t._a.ndim - len(labels.replace("...", ""))) if "..." in labels else extra
    dots = [chr(0x3B1 + i) for i in range(extra)]  # names for what the ellipsis stands for
    named = []
    for labels, t in zip(inputs, tensors, strict=True):
        if "..." in labels:
            n = t._a.ndim - len(labels.replace("...", ""))
            labels = labels.replace("...", "".join(dots[extra - n :]))
        if len(labels) != t._a.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match"
                f" the number of dimensions ({t._a.ndim}) for an operand of shape {list(t.shape)}"
            )
        named.append(labels)
    if arrow:
        output = output.replace("...", "".join(dots))
    else:
        every = "".join(named)
        output = "".join(dots) + "".join(
            sorted(c for c in set(every) - set(dots) if every.count(c) == 1)
        )
    return named, output


def _diagonals(labels: str, t: Any) -> tuple[str, Any]:
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            t = aten.diagonal(t, 0, i, j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + c
    return labels, t


def _contract(a: str, x: Any, b: str, y: Any, keep: set[str]) -> tuple[str, Any]:
    shared = [c for c in a if c in b]
    batch = [c for c in shared if c in keep]
    summed = [c for c in shared if c not in keep]
    only_a = [c for c in a if c not in b]
    only_b = [c for c in b if c not in a]
    if not summed:  # a product, broadcast
        order = batch + only_a + only_b
        x = aten.permute(x, tuple(a.index(c) for c in batch + only_a))
        y = aten.permute(y, tuple(b.index(c) for c in batch + only_b))
        x = aten.reshape(x, (*x.shape, *(1,) * len(only_b)))
        y = aten.reshape(y, (*y.shape[: len(batch)], *(1,) * len(only_a), *y.shape[len(batch) :]))
        return "".join(order), x * y
    x = aten.permute(x, tuple(a.index(c) for c in batch + only_a + summed))
    y = aten.permute(y, tuple(b.index(c) for c in batch + summed + only_b))
    nb, na, ns = len(batch), len(only_a), len(summed)
    lead = tuple(max(p, q) for p, q in zip(x.shape[:nb], y.shape[:nb], strict=True))
    left, right = tuple(x.shape[nb : nb + na]), tuple(y.shape[nb + ns :])
    inner = tuple(x.shape[nb + na :])

    def flat(sizes: tuple[int, ...]) -> int:
        n = 1
        for s in sizes:
            n *= s
        return n

    x = aten.reshape(aten.expand(x, (*lead, *left, *inner)), (flat(lead), flat(left), flat(inner)))
    y = aten.reshape(
        aten.expand(y, (*lead, *inner, *right)), (flat(lead), flat(inner), flat(right))
    )
    r = aten.reshape(aten.bmm(x, y), (*lead, *left, *right))
    return "".join(batch + only_a + only_b), r


@face("tensordot", method=False)
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum over pairs of dimensions of two tensors."""
    if isinstance(dims, int):
        da, db = list(range(a._a.ndim - dims, a._a.ndim)), list(range(dims))
    else:
        da, db = ([d] if isinstance(d, int) else list(d) for d in dims)
    da, db = [d % a._a.ndim for d in da], [d % b._a.ndim for d in db]
    for i, j in zip(da, db, strict=True):
        if a._a.shape[i] != b._a.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._a.shape[i]} in dim"
                f" {i} and second has size {b._a.shape[j]} in dim {j}"
            )
    rest_a = [d for d in range(a._a.ndim) if d not in da]
    rest_b = [d for d in range(b._a.ndim) if d not in db]
    shape = (*(a._a.shape[d] for d in rest_a), *(b._a.shape[d] for d in rest_b))
    n = 1
    for d in da:
        n *= a._a.shape[d]
    x = aten.reshape(
        aten.permute(a, (*rest_a, *da)), (-1, n) if a._a.size else (a._a.size // max(n, 1), n)
    )
    y = aten.reshape(
        aten.permute(b, (*db, *rest_b)), (n, -1) if b._a.size else (n, b._a.size // max(n, 1))
    )
    return aten.reshape(aten.mm(x, y), shape)
