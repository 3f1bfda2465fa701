"""Matrix decompositions against PyTorch: values where they are unique, strides, nodes, gradients,
errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")

SHAPES = [(3, 3), (2, 3, 3), (4, 3), (3, 4), (2, 1, 3, 2)]
SQUARE = [(3, 3), (2, 3, 3), (1, 1)]
ANY = {
    "svd": lambda m, a: m.linalg.svd(a)[1],
    "svd strides": lambda m, a: m.linalg.svd(a),
    "svdvals": lambda m, a: m.linalg.svdvals(a),
    "torch.svd": lambda m, a: m.svd(a),
    "torch.svd without vectors": lambda m, a: m.svd(a, compute_uv=False),
    "qr": lambda m, a: m.linalg.qr(a),
    "qr r": lambda m, a: m.linalg.qr(a, mode="r"),
    "qr complete": lambda m, a: m.linalg.qr(a, mode="complete"),
    "torch.qr": lambda m, a: m.qr(a),
    "geqrf": lambda m, a: m.geqrf(a),
    "lu": lambda m, a: m.linalg.lu(a),
    "lu_factor_ex": lambda m, a: m.linalg.lu_factor_ex(a),
    "torch.lu": lambda m, a: m.lu(a),
    "lu_unpack": lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a)),
    "lu_unpack data": lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a), unpack_pivots=False),
    "lu_unpack pivots": lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a), unpack_data=False),
}
OF_SQUARE = {
    "eigvals": lambda m, a: m.linalg.eigvals(a),
    "eig": lambda m, a: m.linalg.eig(a),
    "eigh": lambda m, a: m.linalg.eigh(a),
    "eigvalsh": lambda m, a: m.linalg.eigvalsh(a, UPLO="U"),
    "ldl_factor": lambda m, a: m.linalg.ldl_factor(a),
    "ldl_factor hermitian": lambda m, a: m.linalg.ldl_factor_ex(a, hermitian=True),
    "cholesky": lambda m, a: m.linalg.cholesky(a @ a.mH + m.eye(a.shape[-1], dtype=a.dtype)),
    "torch.cholesky": lambda m, a: m.cholesky(a @ a.mH + m.eye(a.shape[-1], dtype=a.dtype)),
    "cholesky_ex": lambda m, a: m.linalg.cholesky_ex(a, upper=True).info,
    "cholesky_inverse": lambda m, a: m.cholesky_inverse(a.tril() + 3 * m.eye(a.shape[-1])),
    "cholesky_solve": lambda m, a: m.cholesky_solve(a, a, upper=True),
    "triangular_solve": lambda m, a: m.triangular_solve(a, a, transpose=True),
    "lu_solve": lambda m, a: m.linalg.lu_solve(*m.linalg.lu_factor(a), a.mT, left=False),
    "torch.lu_solve": lambda m, a: m.lu_solve(a.mT, *m.linalg.lu_factor(a)),
    "ormqr": lambda m, a: m.ormqr(a, a[..., 0] * 0.1, a, left=False),
    "householder_product": lambda m, a: m.linalg.householder_product(a, a[..., 0] * 0.1),
}
FREE = ("svd strides", "torch.svd", "eig", "eigh")  # vectors with free signs or phases
CASES = [(n, f, s) for n, f in ANY.items() for s in SHAPES]
CASES += [(n, f, s) for n, f in OF_SQUARE.items() for s in SQUARE]
cases = pytest.mark.parametrize(
    ("name", "call", "shape"), CASES, ids=[f"{n} {s}" for n, _, s in CASES]
)


def _tensors(r: Any) -> list[Any]:
    return list(r) if isinstance(r, tuple) else [r]


def _pair(shape: Any, dtype: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    a = rng.standard_normal(shape)
    a = (a + 1j * rng.standard_normal(shape)).astype(dtype) if dtype is complex else a
    return torchlab.from_numpy(a).requires_grad_(), torch.from_numpy(a.copy()).requires_grad_()


@cases
@pytest.mark.parametrize("dtype", [float, complex])
def test_same_results(name: str, call: Any, shape: Any, dtype: Any) -> None:
    ours, theirs = _pair(shape, dtype)
    if name == "geqrf" and dtype is complex:
        for m, a in ((torchlab, ours), (torch, theirs)):
            with pytest.raises(RuntimeError, match="geqrf does not support automatic diff"):
                m.geqrf(a)
        ours, theirs = ours.detach(), theirs.detach()
    found, expected = _tensors(call(torchlab, ours)), _tensors(call(torch, theirs))
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert (tuple(x.shape), x.stride()) == (tuple(y.shape), y.stride())
        assert str(x.dtype).split(".")[-1] == str(y.dtype).split(".")[-1]
        assert x.requires_grad == y.requires_grad
        if y.grad_fn is not None and "NotImplemented" not in y.grad_fn.name():
            assert x.grad_fn.name() == y.grad_fn.name()
        a, b = x.detach().resolve_conj().numpy(), y.detach().resolve_conj().numpy()
        if name in FREE:
            a, b = np.abs(a), np.abs(b)
        if not (name == "cholesky_ex" and dtype is complex):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


NO_GRADIENT = (
    "qr r", "qr complete", "geqrf", "ldl_factor", "ldl_factor hermitian", "cholesky_ex",
    "lu_unpack pivots",
)  # fmt: skip


@cases
@pytest.mark.parametrize("dtype", [float, complex])
def test_same_gradients(name: str, call: Any, shape: Any, dtype: Any) -> None:
    if name in NO_GRADIENT:
        return
    grads = []
    for m, a in zip((torchlab, torch), _pair(shape, dtype), strict=True):
        loss = 0
        for i, x in enumerate(_tensors(call(m, a))):
            if not x.requires_grad:
                continue
            x = x.abs() if name in FREE or x.is_complex() else x
            weight = np.random.default_rng(i).standard_normal(tuple(x.shape))
            loss = loss + (x * m.from_numpy(weight)).sum()
        if not isinstance(loss, int):
            loss.backward()
            grads.append(a.grad.resolve_conj().numpy() if m is torch else a.grad.numpy())
    if grads:
        np.testing.assert_allclose(*grads, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.linalg.cholesky(m.zeros(2, 3, 3)),
        lambda m: m.cholesky(m.zeros(3, 3)),
        lambda m: m.cholesky(m.zeros(2, 3)),
        lambda m: m.linalg.cholesky(m.zeros(3)),
        lambda m: m.linalg.qr(m.zeros(3, 3), mode="x"),
        lambda m: m.linalg.svd(m.full((2, 2), float("nan"))),
        lambda m: m.linalg.eigh(m.zeros(3, 3), UPLO="X"),
        lambda m: m.linalg.eig(m.full((2, 2), float("inf"))),
        lambda m: m.linalg.lu_factor(m.stack([m.eye(3), m.zeros(3, 3)])),
        lambda m: m.linalg.lu(m.eye(3), pivot=False),
        lambda m: m.lu_unpack(m.eye(3), m.tensor([9, 9, 9], dtype=m.int32)),
        lambda m: m.lu_unpack(m.eye(3), m.tensor([1, 2, 3])),
        lambda m: m.linalg.lu_solve(m.eye(3), m.tensor([1, 2, 3]), m.eye(3)),
        lambda m: m.linalg.lu_solve(m.eye(3), m.tensor([1, 2, 3], dtype=m.int32), m.ones(2, 2)),
        lambda m: m.cholesky_solve(m.ones(2, 2), m.eye(3)),
        lambda m: m.cholesky_solve(m.ones(3), m.eye(3)),
        lambda m: m.cholesky_inverse(m.zeros(3, 3)),
        lambda m: m.triangular_solve(m.ones(2, 2), m.eye(3)),
        lambda m: m.ormqr(m.eye(3), m.ones(3), m.ones(2, 3)),
        lambda m: m.linalg.householder_product(m.ones(2, 3), m.ones(2)),
        lambda m: m.linalg.ldl_solve(m.eye(3), m.tensor([1, 2]), m.eye(3)),
        lambda m: m.pca_lowrank(m.ones(3, 3), q=4),
        lambda m: m.lobpcg(m.eye(5), 2),
        lambda m: m.lobpcg(m.ones(2, 3)),
        lambda m: m.svd(m.ones(3)),
        lambda m: m.linalg.eigvals(m.ones(3, 3, dtype=m.bfloat16)),
        lambda m: m.linalg.lu(m.eye(3, dtype=m.int64)),
    ],
)
def test_same_errors(call: Any) -> None:
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(Exception) as ours:
        call(torchlab)
    assert ours.type.__name__ == theirs.type.__name__
    assert str(theirs.value).split(". If")[0][:60] in str(ours.value)


def test_random_projections_draw_the_same_numbers() -> None:
    a = np.random.default_rng(0).standard_normal((2, 8, 5)).astype(np.float32)
    torch.manual_seed(1)
    torchlab.manual_seed(1)
    for name in ("svd_lowrank", "pca_lowrank"):
        found = getattr(torchlab, name)(torchlab.from_numpy(a), q=3)
        expected = getattr(torch, name)(torch.from_numpy(a), q=3)
        np.testing.assert_allclose(found[1].numpy(), expected[1].numpy(), rtol=1e-5)
