"""Ready parametrizations: weight normalization, spectral normalization, orthogonal matrices.

Source: https://docs.pytorch.org/docs/2.13/nn.html#parametrizations; arXiv:1602.07868 (weight
norm), arXiv:1802.05957 (spectral norm), arXiv:1909.09501 (trivializations).
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.info import finfo
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.nn.module import Module
from torchlab.nn.utils.parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


# ---- weight norm --------------------------------------------------------------------------------


def scaled_to(g: Any, v: Any, dim: int) -> Any:
    """v · g / ‖v‖, the norms over all dimensions but `dim`."""
    return v * (g / aten.norm_except_dim(v, 2, dim))


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return scaled_to(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return aten.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Any:
    """Let the weight be g · v / ‖v‖: its length (original0) and direction (original1) are learnt
    apart; the norms are over all dimensions but `dim`, over all if that is None."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def old_names(
        state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *others: Any
    ) -> None:
        """Take what `torch.nn.utils.weight_norm` saved as {name}_g and {name}_v."""
        old = [f"{prefix}{name}_{end}" for end in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(old_names)
    return module


# ---- spectral norm ------------------------------------------------------------------------------


def as_matrix(weight: Any, dim: int) -> Any:
    """(size of `dim`, all the rest)."""
    if dim != 0:
        order = (dim, *(d for d in range(weight.ndim) if d != dim))
        weight = aten.permute(weight, order)
    return aten.flatten(weight, 1)


def default_dim(module: Module) -> int:
    """The dimension of the outputs: 1 for transposed convolutions."""
    return 1 if getattr(module, "transposed", False) is True else 0


class _SpectralNorm(Module):
    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but "
                f"got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            for name, n in zip(("_u", "_v"), matrix.shape, strict=True):
                start = aten.normal_(aten.new_empty(matrix, (n,)), 0, 1)
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Any, times: int) -> None:
        """Bring _u and _v closer to the singular vectors of the largest singular value."""
        matrix = matrix.detach()
        for _ in range(times):
            for name, m, other in (
                ("_u", matrix, "_v"), ("_v", aten.adjoint(matrix), "_u")
            ):  # fmt: skip
                new = F.normalize(aten.mv(m, getattr(self, other)), dim=0, eps=self.eps)
                aten.copy_(getattr(self, name), new)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies: the buffers change again before the backward of two forwards.
        u, v = aten.clone(self._u), aten.clone(self._v)
        return weight / aten.vdot(u, aten.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Let the weight be divided by its largest singular value, estimated by power iteration, which
    goes on at each forward in training."""
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = default_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)


# ---- orthogonal ---------------------------------------------------------------------------------


def _columns(matrix: Any) -> Any:
    """The orthonormal matrix of its QR factorization with R's diagonal positive."""
    a, tau = aten.geqrf(matrix)
    q = aten.linalg_householder_product(a, tau)
    return q * aten.unsqueeze(aten.sgn(aten.diagonal(a, 0, -2, -1)), -2)


def _is_orthogonal(matrix: Any) -> bool:
    n, k = matrix.shape[-2:]
    eps = 10.0 * n * finfo(matrix.dtype).eps
    eye = aten.eye(k, dtype=matrix.dtype, device=matrix.device)
    product = aten.matmul(aten.adjoint(matrix), matrix)
    return bool(aten.allclose(product, aten.expand(eye, product.shape), atol=eps))


class _Orthogonal(Module):
    base: Any

    def __init__(
        self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        self.register_buffer("base", None)

    def forward(self, weight: Any) -> Any:
        wide = weight.shape[-2] < weight.shape[-1]
        x = aten.transpose(weight, -2, -1) if wide else weight
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = aten.tril(x, -1)
            tau = 2.0 / (1.0 + aten.sum(a * a, -2))
            signs = aten.unsqueeze(aten.diagonal(x.detach(), 0, -2, -1), -2)
            q = aten.linalg_householder_product(a, tau) * aten.trunc(signs)
        else:
            a = aten.tril(x)
            if n != k:
                a = aten.cat([a, aten.new_zeros(a.detach(), (*a.shape[:-1], n - k))], -1)
            a = a - aten.adjoint(a)
            q = self._rotation(a)
            if n != k:
                q = aten.narrow(q, -1, 0, k)
        if self.base is not None:
            q = aten.matmul(self.base, q)
        return aten.transpose(q, -2, -1) if wide else q

    def _rotation(self, a: Any) -> Any:
        """The orthogonal matrix of a skew-symmetric one."""
        if self.orthogonal_map == "matrix_exp":
            return aten.linalg_matrix_exp(a)
        eye = aten.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return aten.linalg_solve(eye - 0.5 * a, eye + 0.5 * a)

    def right_inverse(self, value: Any) -> Any:
        if value.shape != self.shape:
            raise ValueError(
                "Expected a matrix or batch of matrices of shape "
                f"{self.shape}. Got a tensor of shape {value.shape}."
            )
        wide = value.shape[-2] < value.shape[-1]
        q = aten.transpose(value, -2, -1) if wide else value
        n, k = q.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            a, tau = aten.geqrf(q)
            signs = aten.sign(aten.diagonal(a, 0, -2, -1))
            # Where LAPACK left a reflection out, `forward` has one: turned once more.
            signs = aten.where(tau == 0, -signs, signs)
            a = aten.diagonal_scatter(a, signs, 0, -2, -1)
            return aten.transpose(a, -2, -1) if wide else a
        if n == k:
            q = aten.clone(q) if _is_orthogonal(q) else _columns(q)
        else:  # the base is square: columns by chance complete it
            more = aten.randn((*q.shape[:-1], n - k), dtype=q.dtype, device=q.device)
            q = _columns(aten.cat([q, more], -1))
        self.base = q
        start = aten.zeros_like(value)
        aten.fill_(aten.diagonal(start, 0, -2, -1), -1.0)
        return start


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Let the weight's columns, or its rows if it is wide, be orthonormal.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; None is the first for square and
    complex matrices, else the last. use_trivialization: start from a base, so that a value can be
    assigned.
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
