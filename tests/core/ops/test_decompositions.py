"""Matrix decompositions: what they must satisfy, closed forms, SciPy's values, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import torchlab
from torchlab import linalg

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 1, 4, 3), (0, 3, 3), (2, 0, 3), (2, 3, 0), (1, 1)]
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def _matrix(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return torchlab.from_numpy(
        np.ascontiguousarray(
            a.astype(dtype) if np.dtype(dtype).kind == "c" else a.real.astype(dtype)
        )
    )


def _positive(n: int = 3, dtype: Any = np.float64) -> Any:
    a = _matrix((n, n), dtype)
    return a @ a.mH + torchlab.eye(n, dtype=a.dtype)


def _close(x: Any, y: Any) -> None:
    x, y = (np.asarray(t._a if hasattr(t, "_a") else t) for t in (x, y))
    tolerance = 2e-4 if x.dtype.char in "fF" else 1e-10
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


both = pytest.mark.parametrize("dtype", TYPES)
shapes = pytest.mark.parametrize("shape", SHAPES)


@both
@shapes
@pytest.mark.parametrize("full", [True, False])
def test_svd(shape: Any, dtype: Any, full: bool) -> None:
    a = _matrix(shape, dtype)
    u, s, vh = linalg.svd(a, full_matrices=full)
    *batch, m, n = shape
    k = min(m, n)
    assert tuple(u.shape) == (*batch, m, m if full else k)
    assert tuple(vh.shape) == (*batch, n if full else k, n)
    assert s.dtype == a.real.dtype if a.is_complex() else s.dtype == a.dtype
    _close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
    for basis in (u.mH @ u, vh @ vh.mH):
        _close(basis, np.broadcast_to(np.eye(basis.shape[-1]), basis.shape))
    _close(linalg.svdvals(a), s)
    assert bool((s[..., 1:] <= s[..., :-1]).all())


@both
@shapes
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(shape: Any, dtype: Any, mode: str) -> None:
    a = _matrix(shape, dtype)
    q, r = linalg.qr(a, mode=mode)
    _close(q @ r, a)
    _close(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])))
    _close(r.tril(-1), np.zeros(r.shape))
    if mode == "reduced":
        empty, only = linalg.qr(a, mode="r")
        assert tuple(empty.shape) == (0,)
        _close(only, r)
        if shape[-2] >= shape[-1]:
            _close(linalg.householder_product(*torchlab.geqrf(a)), q)


@both
@shapes
def test_lu(shape: Any, dtype: Any) -> None:
    a = _matrix(shape, dtype)
    p, lower, upper = linalg.lu(a)
    _close(p @ lower @ upper, a)
    lu, pivots, info = linalg.lu_factor_ex(a)
    assert pivots.dtype is torchlab.int32 and tuple(info.shape) == shape[:-2]
    for x, y in zip(torchlab.lu_unpack(lu, pivots), (p, lower, upper), strict=True):
        _close(x, y)
    if lu.numel() and lu.ndim == 2:
        expected, places = scipy.linalg.lu_factor(np.asarray(a._a))
        _close(lu, expected)
        np.testing.assert_array_equal(pivots._a, places + 1)


@both
def test_eigh_reads_one_triangle(dtype: Any) -> None:
    a = _matrix((2, 4, 4), dtype)
    for uplo, part in (("L", np.tril), ("U", np.triu)):
        half = part(np.asarray(a._a), -1 if uplo == "L" else 1)
        whole = half + half.conj().swapaxes(-1, -2) + np.eye(4) * np.asarray(a._a).real
        values, vectors = linalg.eigh(a, UPLO=uplo)
        expected = np.stack([scipy.linalg.eigvalsh(x) for x in whole])
        _close(values, expected.astype(values._a.dtype))
        _close(
            vectors @ torchlab.diag_embed(values).to(vectors.dtype) @ vectors.mH,
            whole.astype(dtype),
        )
        _close(linalg.eigvalsh(a, UPLO=uplo), values)


@both
def test_eig(dtype: Any) -> None:
    a = _matrix((2, 5, 5), dtype)
    values, vectors = linalg.eig(a)
    assert values.is_complex() and vectors.is_complex()
    _close(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    _close(linalg.vector_norm(vectors, dim=-2), np.ones((2, 5), values.real._a.dtype))
    _close(linalg.eigvals(a), values)


def test_eigenvalues_of_a_rotation() -> None:
    c, s = np.cos(0.3), np.sin(0.3)
    values = linalg.eigvals(torchlab.tensor([[c, -s], [s, c]], dtype=torchlab.float64))
    _close(np.sort_complex(values._a), np.sort_complex(np.exp([0.3j, -0.3j])))


@both
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_and_what_uses_it(dtype: Any, upper: bool) -> None:
    a = _positive(3, dtype)
    factor = linalg.cholesky(a, upper=upper)
    _close(factor.mH @ factor if upper else factor @ factor.mH, a)
    _close(torchlab.cholesky(a, upper=upper), factor)
    b = _matrix((2, 3, 2), dtype, 1)
    _close(a @ torchlab.cholesky_solve(b, factor, upper=upper), b)
    _close(a @ torchlab.cholesky_inverse(factor, upper=upper), np.eye(3))
    assert factor.stride() == (1, 3)


@both
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(dtype: Any, left: bool, adjoint: bool) -> None:
    a = _matrix((2, 3, 3), dtype)
    b = _matrix((3, 2) if left else (2, 3), dtype, 1)
    x = linalg.lu_solve(*linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    used = a.mH if adjoint else a
    _close(used @ x if left else x @ used, np.broadcast_to(b._a, x.shape))


@both
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldl(dtype: Any, hermitian: bool) -> None:
    a = _matrix((2, 5, 5), dtype)
    a = a + (a.mH if hermitian else a.mT)
    b = _matrix((2, 5, 2), dtype, 1)
    _close(
        a @ linalg.ldl_solve(*linalg.ldl_factor(a, hermitian=hermitian), b, hermitian=hermitian), b
    )


@both
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_ormqr_is_the_product_with_the_square_q(dtype: Any, left: bool, transpose: bool) -> None:
    a = _matrix((4, 3), dtype)
    q = linalg.qr(a, mode="complete")[0]
    q = q.mH if transpose else q
    c = _matrix((4, 2) if left else (2, 4), dtype, 1)
    found = torchlab.ormqr(*torchlab.geqrf(a), c, left=left, transpose=transpose)
    _close(found, q @ c if left else c @ q)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(upper: bool, transpose: bool, unit: bool) -> None:
    a, b = _matrix((3, 3)), _matrix((3, 2), seed=1)
    x, copy = torchlab.triangular_solve(b, a, upper, transpose, unit)
    _close(copy, a)
    expected = scipy.linalg.solve_triangular(
        a._a, b._a, lower=not upper, trans=int(transpose), unit_diagonal=unit
    )
    _close(x, expected)


def test_older_names_give_what_they_promise() -> None:
    a = _matrix((4, 3))
    u, s, v = torchlab.svd(a)
    _close(u @ torchlab.diag(s) @ v.mT, a)
    u, s, v = a.svd(compute_uv=False)
    assert not u.any() and not v.any() and tuple(u.shape) == (4, 4) and tuple(v.shape) == (3, 3)
    q, r = a.qr(some=False)
    assert tuple(q.shape) == (4, 4)
    lu, pivots = a.lu()
    p, lower, upper = torchlab.lu_unpack(lu, pivots)
    _close(p @ lower @ upper, a)
    lu, pivots, infos = torchlab.lu(a, get_infos=True)
    assert int(infos) == 0


def test_low_rank_finds_a_matrix_of_that_rank() -> None:
    a = _matrix((2, 20, 3)) @ _matrix((2, 3, 10), seed=1)
    for x in (a, a.mT):
        u, s, v = torchlab.svd_lowrank(x, q=4)
        _close(u @ torchlab.diag_embed(s) @ v.mH, x)
        m = x.mean(-2, keepdim=True)
        u, s, v = torchlab.svd_lowrank(x, q=4, M=m)
        _close(u @ torchlab.diag_embed(s) @ v.mH, x - m)
        u, s, v = torchlab.pca_lowrank(x, q=4)
        _close(u @ torchlab.diag_embed(s) @ v.mH, x - m)
    with pytest.raises(ValueError, match="must be non-negative integer"):
        torchlab.pca_lowrank(a, q=11)


@pytest.mark.parametrize("method", ["ortho", "basic"])
@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_the_ends_of_the_spectrum(method: str, largest: bool) -> None:
    a = _matrix((2, 12, 12))
    a = a @ a.mT
    steps = []
    values, vectors = torchlab.lobpcg(
        a, 3, largest=largest, method=method, tracker=lambda w: steps.append(w.ivars["istep"])
    )
    every = linalg.eigvalsh(a)
    _close(values, every[..., -3:].flip(-1) if largest else every[..., :3])
    np.testing.assert_allclose((a @ vectors)._a, (vectors * values.unsqueeze(-2))._a, atol=1e-5)
    assert steps and steps[0] == 1


def test_lobpcg_of_a_generalized_problem() -> None:
    a, b = _positive(9), _positive(9) + torchlab.eye(9, dtype=torchlab.float64)
    inverse = linalg.inv(a)
    values, _ = torchlab.lobpcg(a, 2, B=b, iK=inverse, largest=False)
    _close(values, scipy.linalg.eigh(a._a, b._a, eigvals_only=True)[:2])
    with pytest.raises(ValueError, match="3 x the number"):
        torchlab.lobpcg(a, 4)


def test_lobpcg_gradient_is_that_of_eigh() -> None:
    a = _matrix((9, 9))
    a = a @ a.mT
    weight = _matrix((9, 2), seed=2)
    grads = []
    for pairs in (
        lambda x: torchlab.lobpcg(x, 2, tol=1e-13),
        lambda x: [y[..., -2:].flip(-1) for y in linalg.eigh((x + x.mT) / 2)],
    ):
        x = a.clone().requires_grad_()
        values, vectors = pairs(x)
        loss = (values * weight[0]).sum() + (vectors**2 * weight).sum()
        (first,) = torchlab.autograd.grad(loss, x, create_graph=True)
        (second,) = torchlab.autograd.grad((first * first).sum(), x)
        grads.append((first, second))
    for found, expected in zip(*grads, strict=True):
        scale = float(expected.abs().max())
        np.testing.assert_allclose(
            found.detach()._a / scale, expected.detach()._a / scale, atol=1e-6
        )


def test_errors_say_which_matrix_and_why() -> None:
    good = torchlab.eye(3, dtype=torchlab.float64)
    bad = torchlab.diag(torchlab.tensor([1.0, -1.0, 1.0], dtype=torchlab.float64))
    pair = torchlab.stack([good, bad])
    failed = linalg.LinAlgError
    minor = r"leading minor of order 2 is not positive-definite\)\."
    with pytest.raises(failed, match=r"linalg.cholesky: \(Batch element 1\): .*" + minor):
        linalg.cholesky(pair)
    with pytest.raises(failed, match=r"^cholesky: The factorization could not.*" + minor):
        torchlab.cholesky(bad)
    assert linalg.cholesky_ex(pair).info.tolist() == [0, 2]
    lost = good.clone()
    lost[1, 0] = float("nan")
    assert linalg.cholesky_ex(torchlab.stack([lost, good, bad])).info.tolist() == [2, 0, 2]
    assert linalg.cholesky_ex(lost.mT, upper=True).info.item() == 2
    with pytest.raises(failed, match=minor):
        linalg.cholesky(lost)
    assert linalg.eigh(lost, UPLO="U").eigenvalues.tolist() == [1, 1, 1]
    assert linalg.eigvalsh(lost.mT).tolist() == [1, 1, 1]
    with pytest.raises(failed, match="linalg.eigh"):
        linalg.eigh(lost)
    with pytest.raises(failed, match="linalg.cholesky_ex"):
        linalg.cholesky_ex(pair, check_errors=True)
    zero = torchlab.zeros(3, 3)
    with pytest.raises(RuntimeError, match=r"linalg.lu_factor: U\[1,1\] is zero"):
        linalg.lu_factor(zero)
    with pytest.raises(failed, match="cholesky_inverse: The diagonal element 1 is zero"):
        torchlab.cholesky_inverse(zero)
    nan = torchlab.full((2, 3, 3), float("nan"))
    with pytest.raises(failed, match=r"linalg.svd: \(Batch element 0\): .*non-finite"):
        linalg.svd(nan)
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        linalg.eig(nan)
    assert issubclass(linalg.LinAlgError, RuntimeError)


SQUARE_ONLY = ("cholesky", "cholesky_ex", "eig", "eigvals", "eigh", "eigvalsh", "ldl_factor")


@pytest.mark.parametrize("name", [*SQUARE_ONLY, "qr", "svd", "svdvals", "lu", "lu_factor"])
def test_what_no_decomposition_takes(name: str) -> None:
    call = getattr(linalg, name)
    for bad in (torchlab.ones(3), torchlab.eye(3, dtype=torchlab.int64)):
        with pytest.raises(RuntimeError):
            call(bad)
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        call(torchlab.eye(3, dtype=torchlab.float16))
    if name in SQUARE_ONLY:
        with pytest.raises(RuntimeError, match="square matrices, but they are 2 by 3"):
            call(torchlab.ones(2, 3))


def test_gradients_that_do_not_exist() -> None:
    a = torchlab.eye(3, dtype=torchlab.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="geqrf"):
        torchlab.geqrf(a)[0].sum().backward()
    with pytest.raises(RuntimeError, match="linalg_ldl_factor_ex is not implemented"):
        linalg.ldl_factor(a)[0].sum().backward()
    with pytest.raises(RuntimeError, match="which is not computed when mode='r'"):
        linalg.qr(a, mode="r")[1].sum().backward()
    tall = _matrix((4, 3)).requires_grad_()
    with pytest.raises(RuntimeError, match="mode='complete' and nrows > ncols"):
        linalg.qr(tall, mode="complete")[0].sum().backward()


def test_gradients_that_depend_on_a_free_phase() -> None:
    a = _matrix((3, 3), np.complex128)
    for name, which in (("svd", 0), ("eig", 1), ("eigh", 1)):
        x = a.clone().requires_grad_()
        with pytest.raises(RuntimeError, match=r"specified up to multiplication by e\^\{i phi\}"):
            getattr(linalg, name)(x)[which].imag.sum().backward()


@both
def test_complex_and_wide_gradients(dtype: Any) -> None:
    if dtype not in (np.float64, np.complex128):
        return
    check = torchlab.autograd.gradcheck
    for shape in ((2, 4), (4, 2), (3, 3)):
        a = _matrix(shape, dtype).requires_grad_()

        def invariant(x: Any) -> Any:
            u, s, vh = linalg.svd(x, full_matrices=False)
            return u.abs(), s, vh.abs(), u @ vh

        assert check(invariant, (a,))
        assert check(lambda x: tuple(linalg.lu(x)[1:]), (a,))
        assert check(lambda x: tuple(linalg.qr(x)), (a,))
        assert check(lambda x: linalg.lu_factor_ex(x)[0], (a,))


def test_several_outs() -> None:
    a = _matrix((2, 3, 3))
    outs = tuple(torchlab.empty(0, dtype=torchlab.float64) for _ in range(3))
    r = linalg.svd(a, out=outs)
    assert all(x is y for x, y in zip(r, outs, strict=True))
    _close(outs[1], linalg.svdvals(a))
    single = torchlab.empty(0)
    with pytest.raises(RuntimeError, match="can't be cast|dtype"):
        linalg.eigvals(a, out=single)


def test_strides_are_lapacks() -> None:
    a = _matrix((2, 3, 4))
    u, s, vh = linalg.svd(a)
    assert (u.stride(), s.stride(), vh.stride()) == ((9, 1, 3), (3, 1), (16, 1, 4))
    q, r = linalg.qr(a)
    assert (q.stride(), r.stride()) == ((9, 1, 3), (12, 1, 3))
    p, lower, upper = linalg.lu(a)
    assert (p.stride(), lower.stride(), upper.stride()) == ((9, 3, 1), (9, 3, 1), (12, 4, 1))
    assert linalg.lu_factor(a)[0].stride() == (12, 1, 3)
    meta = linalg.svd(torchlab.empty(2, 3, 4, device="meta"))
    assert [tuple(x.shape) for x in meta] == [(2, 3, 3), (2, 3), (2, 4, 4)]


def test_a_fresh_out_gets_lapacks_strides_and_another_keeps_its_own() -> None:
    a = _positive(3)
    fresh = torchlab.empty(0, dtype=torchlab.float64)
    assert linalg.cholesky(a, out=fresh).stride() == (1, 3)
    kept = torchlab.empty(3, 3, dtype=torchlab.float64)
    assert linalg.cholesky(a, out=kept).stride() == (3, 1)
    _close(kept, fresh)
    q, r = (torchlab.empty(0, dtype=torchlab.float64) for _ in range(2))
    linalg.qr(a, out=(q, r))
    assert (q.stride(), r.stride()) == ((1, 3), (1, 3))


def test_older_functions_warn_once() -> None:
    torchlab.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="torch.qr is deprecated in favor of torch.linalg.qr"):
            torchlab.qr(torchlab.eye(2))
    finally:
        torchlab.set_warn_always(False)
