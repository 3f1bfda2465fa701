"""A few extreme eigenpairs of a symmetric matrix: the locally optimal block preconditioned
conjugate gradient method.

Knyazev (2001), "Toward the optimal preconditioned eigensolver",
https://doi.org/10.1137/S1064827500366124; the orthogonal basis after Stathopoulos and Wu (2002),
"A block orthogonalization procedure with constant synchronization requirements",
https://doi.org/10.1137/S1064827500370883.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.lobpcg.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._lapack import columns, diag, differences, mH, rows, wants_gradient


class LOBPCG:
    """The state of one iteration, which a tracker sees: A, B, iK the problem, X, E, R, S the
    vectors, values, residuals and basis; parameters in iparams, fparams, bparams, variables in
    ivars, fvars, bvars, tvars."""

    def __init__(
        self, A: Any, B: Any, X: Any, iK: Any, params: dict[str, Any], method: str, tracker: Any
    ) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.method, self.tracker = method, tracker
        self.iparams = {k: v for k, v in params.items() if type(v) is int}
        self.fparams = {k: v for k, v in params.items() if type(v) is float}
        self.bparams = {k: v for k, v in params.items() if type(v) is bool}
        n = self.iparams["n"]
        self.E = aten.zeros(n, dtype=X.dtype, device=X.device)
        self.R = aten.zeros_like(X)
        self.S = aten.zeros(X.shape[0], 3 * n, dtype=X.dtype, device=X.device)
        self.P: Any = None
        self.tvars: dict[str, Any] = {}
        self.ivars = {"istep": 0, "iterations_left": params["niter"], "converged_count": 0}
        self.ivars["converged_end"] = 0
        self.fvars: dict[str, float] = {}
        self.bvars = {"force_stop": False}

    def run(self) -> None:
        """Iterate until k pairs have converged, the iterations are used up, or the tracker
        stops."""
        niter = self.iparams["niter"]
        self._start()
        while True:
            self._residual()
            if self.tracker is not None and self.ivars["istep"]:
                self.tracker(self)
            done = self.ivars["converged_count"] >= self.iparams["k"]
            if done or self.bvars["force_stop"] or 0 <= niter <= self.ivars["istep"]:
                return
            self._step()
            if self.S.shape[1] == self.X.shape[1]:  # no direction is left to search in
                return
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] -= 1

    def _times_b(self, x: Any) -> Any:
        return x if self.B is None else self.B @ x

    def _start(self) -> None:
        norm = aten.linalg_vector_norm
        self.fvars["X_norm"] = float(norm(self.X))
        self.fvars["A_norm"] = float(norm(self.A @ self.X)) / self.fvars["X_norm"]
        self.fvars["B_norm"] = float(norm(self._times_b(self.X))) / self.fvars["X_norm"]
        self.X = self._orthonormal(self.X, None)
        self.E, z = self._ritz(self.X)
        self.X = self.X @ z

    def _residual(self) -> None:
        self.R = self.A @ self.X - self._times_b(self.X) * self.E
        size = aten.linalg_vector_norm(self.R, 2, 0)
        x = aten.linalg_vector_norm(self.X, 2, 0)
        scale = x * (self.fvars["A_norm"] + aten.abs(self.E) * self.fvars["B_norm"])
        self.tvars["rerr"] = size / scale
        late = aten.nonzero(~(self.tvars["rerr"] < self.fparams["tol"]))
        self.ivars["converged_count"] = int(late[0, 0]) if late.shape[0] else self.X.shape[1]

    def _ritz(self, s: Any) -> tuple[Any, Any]:
        """Eigenvalues and vectors of A in the B-orthonormal basis s, the wanted ones first."""
        small = mH(s) @ (self.A @ s)
        values, z = aten.linalg_eigh((small + mH(small)) * 0.5)
        if self.bparams["largest"]:
            values, z = aten.flip(values, (0,)), aten.flip(z, (1,))
        return values, z

    def _step(self) -> None:
        n = self.X.shape[1]
        active = min(self.ivars["converged_count"], n - 1)
        w = aten.narrow(self.R, 1, active, n - active)
        w = w if self.iK is None else self.iK @ w
        if self.method == "basic":
            values, x, p = self._basic(w, active)
        else:
            values, x, p = self._ortho(w, active)
        self.E, self.X, self.P = values, x, p
        self.ivars["converged_end"] = active + self.S.shape[1] - n

    def _ortho(self, w: Any, active: int) -> tuple[Any, Any, Any]:
        n = self.X.shape[1]
        kept = self.X if self.P is None else aten.cat([self.X, self.P], 1)
        w = self._orthonormal(w, kept)
        s = self.S = aten.cat([kept, w], 1)
        values, z = self._ritz(s)
        first = aten.narrow(z, 1, 0, n)
        # the new directions: what of the new X lies outside the old one, orthogonal to the new X
        turn = aten.cat([aten.zeros_like(first[:n]), first[n:]], 0)[:, active:]
        turn = turn - first @ (mH(first) @ turn)
        turn = turn - first @ (mH(first) @ turn)
        p = s @ turn
        return values[:n], s @ first, self._orthonormal(p, s @ first)

    def _basic(self, w: Any, active: int) -> tuple[Any, Any, Any]:
        """Rayleigh and Ritz in [X, R, P] as it is; its Gram matrix must be positive-definite."""
        n = self.X.shape[1]
        s = aten.cat([self.X, w] if self.P is None else [self.X, w, self.P], 1)
        self.S = s
        gram = mH(s) @ self._times_b(s)
        d = aten.diagonal(gram) ** -0.5
        factor = aten.linalg_cholesky(gram * rows(d) * columns(d), upper=True)
        one = aten.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
        inverse = rows(d) * aten.linalg_solve_triangular(factor, one, upper=True)
        values, z = self._ritz(s @ inverse)
        first = inverse @ aten.narrow(z, 1, 0, n)
        p = s[:, n:] @ first[n:, active:]
        return values[:n], s @ first, p

    def _orthonormal(self, u: Any, against: Any) -> Any:
        """A B-orthonormal basis of the columns of u, without their parts along `against`, by
        eigenvalues of the Gram matrix; directions that vanish drop out."""
        eps = float(np.finfo(u._k.dtype.np).eps)
        for _ in range(self.iparams["ortho_i_max"]):
            if not u.shape[1]:
                return u
            if against is not None:
                u = u - against @ (mH(against) @ self._times_b(u))
            gram = mH(u) @ self._times_b(u)
            size = aten.diagonal(gram)
            d = aten.where(size > 0, size, 1) ** -0.5
            values, z = aten.linalg_eigh(gram * rows(d) * columns(d))
            keep = values > eps * aten.amax(values)
            if not bool(aten.all(keep)):
                z, values = z[:, keep], values[keep]
            u = u @ (rows(d) * z * values**-0.5)
        return u


# ---- the gradient -------------------------------------------------------------------------------


@op(
    "_eigenpairs(Tensor A, Tensor? B, Tensor values, Tensor vectors) -> (Tensor E, Tensor X)",
    method=False,
    spaces=(),
    half=False,
    vjp={"A, B": "eigenpairs_backward(g0, g1, A, B, result0, result1)"},
    grad_name="LOBPCGAutogradFunctionBackward",
    meta=lambda a, b, e, x: (MetaArray(e.shape, e.dtype), MetaArray(x.shape, x.dtype)),
)
def _eigenpairs(xp: Any, a: Any, b: Any, e: Any, x: Any) -> Any:
    """Eigenpairs of a symmetric A that were found without a record, as functions of A."""
    return xp.array(e, order="C"), xp.array(x, order="C")


@vjp_helper
def eigenpairs_backward(ge: Any, gx: Any, a: Any, b: Any, e: Any, x: Any) -> Any:
    """Some eigenpairs of many: within their span as for `eigh`; outside it dxᵢ is
    (eᵢ I − A)⁺ dA xᵢ, for which one linear system per vector is solved."""
    if b is not None:
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")
    if ge is None and gx is None:
        return None, None
    xh = mH(x)
    if gx is None:
        return (x * columns(ge)) @ xh, None
    inner = (xh @ gx) / differences(e)
    inner = inner - aten.diag_embed(diag(inner))
    if ge is not None:
        inner = inner + aten.diag_embed(ge)
    span = x @ xh
    one = aten.eye(a._a.shape[-1], dtype=a.dtype, device=a.device)
    shifted = rows(rows(e)) * one - aten.unsqueeze(a, -3)
    outside = aten.unsqueeze(one - span, -3)
    systems = shifted @ outside + aten.unsqueeze(span, -3)
    wanted = gx - span @ gx
    y = aten.squeeze(aten.linalg_solve(systems, rows(aten.transpose(wanted, -2, -1))), -1)
    return (x @ inner + aten.transpose(y, -2, -1)) @ xh, None


# ---- the front end ------------------------------------------------------------------------------

_EPS = {"float32": 1.2e-07, "float64": 2.23e-16}


@face("lobpcg", method=False)
def lobpcg(
    A: Any,
    k: Any = None,
    B: Any = None,
    X: Any = None,
    n: Any = None,
    iK: Any = None,
    niter: Any = None,
    tol: Any = None,
    largest: Any = None,
    method: Any = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> Any:
    """(E, X): the k largest (or smallest) eigenvalues (…, k) of A x = e B x and their vectors
    (…, m, k); A is symmetric, B symmetric and positive-definite."""
    _check(A, B)
    if wants_gradient(A):
        A = (A + aten.transpose(A, -2, -1)) / 2
    *batch, m, _ = A.shape
    n = (1 if k is None else k) if n is None else n
    n = n if X is None else X.shape[-1]
    k = n if k is None else k
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than"
            f" 3 x the number of requested eigenpairs (={n})"
        )
    if not 1 <= k <= n:
        raise ValueError(f"lobpcg: k (={k}) must be at least 1 and at most n (={n})")
    method = "basic" if method == "basic" else "ortho"  # PyTorch takes any other name for "ortho"
    eps = _EPS.get(A._k.dtype.name)
    if eps is None:
        raise NotImplementedError(
            f"lobpcg: A must be float32 or float64, but it is {A.dtype}; convert it with .to()"
        )
    tol = eps**0.5 if tol is None else tol
    params = {
        "m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter,
        "ortho_i_max": 3, "ortho_j_max": 3, "tol": float(tol), "ortho_tol": float(tol),
        "ortho_tol_drop": float(tol), "ortho_tol_replace": float(tol),
        "largest": True if largest is None else bool(largest), "ortho_use_drop": False,
    }  # fmt: skip
    for more in (ortho_iparams, ortho_fparams, ortho_bparams):
        params |= {f"ortho_{name}": value for name, value in (more or {}).items()}
    if X is None:
        X = aten.randn((*batch, m, n), dtype=A.dtype, device=A.device)
    values, vectors = _solve(A, B, X, iK, params, method, tracker)
    return tuple(_eigenpairs.call(A, B, values, vectors))


def _check(a: Any, b: Any) -> None:
    if a.ndim < 2 or a.shape[-2] != a.shape[-1]:
        raise AssertionError(f"A must be square, got shape {a.shape}")
    if b is not None and tuple(a.shape) != tuple(b.shape):
        raise AssertionError(f"A and B must have same shape, got {a.shape} vs {b.shape}")


def _solve(
    a: Any, b: Any, x: Any, ik: Any, params: dict[str, Any], method: str, tracker: Any
) -> Any:
    """The pairs of all matrices of a batch, one after the other."""
    *batch, m, _ = a.shape
    k, count = params["k"], int(np.prod(batch, dtype=int))

    def each(t: Any) -> Any:
        if t is None:
            return [None] * count
        t = aten.detach(t)
        return [t] if not batch else list(aten.reshape(t, (count, m, t.shape[-1])))

    values, vectors = [], []
    for matrices in zip(each(a), each(b), each(x), each(ik), strict=True):
        worker = LOBPCG(*matrices, params, method, tracker)
        worker.run()
        values.append(worker.E[:k])
        vectors.append(worker.X[:, :k])
    if not batch:
        return values[0], vectors[0]
    if not count:
        return aten.new_zeros(a, (*batch, k)), aten.new_zeros(a, (*batch, m, k))
    shape = tuple(batch)
    return (
        aten.reshape(aten.stack(values), (*shape, k)),
        aten.reshape(aten.stack(vectors), (*shape, m, k)),
    )
