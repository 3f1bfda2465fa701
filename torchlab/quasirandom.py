"""`torchlab.quasirandom`: points that fill the unit cube more evenly than random ones.

    engine = torch.quasirandom.SobolEngine(dimension=5)
    engine.draw(3)
    # [[0.00, 0.00, 0.00, 0.00, 0.00], [0.50, …], [0.75, 0.25, 0.25, …]]

Source: https://docs.pytorch.org/docs/2.13/generated/torch.quasirandom.SobolEngine.html; Joe
and Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci.
Comput. 30, 2008; Owen's scrambling in Matousek, "On the L2-discrepancy for anchored boxes", 1998
"""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.generator import Generator
from torchlab._core.tensor import Tensor

__all__ = ["SobolEngine"]

_BITS = 30
_LARGEST = 21201
_POWERS = 2 ** np.arange(_BITS - 1, -1, -1, dtype=np.int64)  # of a number's bits, the first first


@functools.cache
def _joe_kuo() -> tuple[np.ndarray, np.ndarray]:
    """Joe and Kuo's primitive polynomials (_LARGEST,) and first direction numbers (_LARGEST, 18),
    from SciPy's copy of their table; int64."""
    spec = importlib.util.find_spec("scipy.stats")
    if spec is None or spec.origin is None:
        raise RuntimeError("SobolEngine needs the table of direction numbers that SciPy has")
    folder = os.path.dirname(spec.origin)
    with np.load(os.path.join(folder, "_sobol_direction_numbers.npz")) as table:
        return table["poly"].astype(np.int64), table["vinit"].astype(np.int64)


def _direction_numbers(dimension: int) -> np.ndarray:
    """int64 (dimension, _BITS): what the point's coordinates are changed by (exclusive or), where
    bit j of the point's number is the lowest that is 0."""
    polynomials, initial = (a[:dimension] for a in _joe_kuo())
    found = np.ones((dimension, _BITS), np.int64)  # the first dimension's; multiples of 2^-(1+j)
    degrees = np.frexp(polynomials)[1] - 1
    for degree in np.unique(degrees[1:]):
        rows = np.flatnonzero(degrees == degree)
        rows = rows[rows > 0]
        wanted = polynomials[rows, None] >> np.arange(degree - 1, -1, -1) & 1  # all but the first
        v = np.zeros((len(rows), _BITS), np.int64)
        v[:, :degree] = initial[rows, :degree]
        for j in range(degree, _BITS):
            before = v[:, j - degree : j][:, ::-1]
            terms = (wanted * before) << np.arange(1, degree + 1)
            v[:, j] = v[:, j - degree] ^ np.bitwise_xor.reduce(terms, axis=1)
        found[rows] = v
    return found * _POWERS


def _changes(directions: np.ndarray, first: int, n: int) -> np.ndarray:
    """(n, dimension): what leads from the points `first`, … to the ones after them."""
    numbers = np.arange(first, first + n, dtype=np.int64)
    lowest_zero = np.frexp((~numbers & (numbers + 1)).astype(np.float64))[1] - 1
    return directions[:, lowest_zero].T


class SobolEngine:
    """Points of a Sobol sequence in [0, 1)^dimension, drawn one after the other.

    dimension: 1 to 21201. scramble: shift and scramble the points at random; every engine has other
    ones. seed: from which; None: PyTorch's random numbers go on. ValueError for other dimensions.
    """

    MAXBIT = _BITS
    MAXDIM = _LARGEST

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        directions = _direction_numbers(dimension)
        if scramble:
            directions = self._scrambled(directions)
        else:
            self.shift = aten.zeros(dimension, dtype=dt.int64, device="cpu")
        self.sobolstate = aten.from_numpy(np.ascontiguousarray(directions))
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scrambled(self, directions: np.ndarray) -> np.ndarray:
        """The direction numbers after a random matrix per dimension, lower triangular with ones on
        its diagonal, multiplied their bits; and sets a random shift."""
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        how: dict[str, Any] = {"device": "cpu", "generator": generator}
        shift = aten.randint(2, (self.dimension, _BITS), **how).numpy()
        self.shift = aten.from_numpy(shift @ _POWERS[::-1])
        matrices = aten.randint(2, (self.dimension, _BITS, _BITS), **how).numpy()
        matrices = np.tril(matrices, -1) | np.eye(_BITS, dtype=np.int64)
        bits = (directions[:, None, :] // _POWERS[:, None]) & 1  # (dimension, bit, direction)
        counts = matrices.astype(np.float32) @ bits.astype(np.float32)  # exact, by BLAS
        return np.einsum("dbj,b->dj", counts.astype(np.int64) & 1, _POWERS)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dt.dtype | None = None) -> Tensor:
        """The next `n` points, (n, dimension), in the default dtype if none is given."""
        kind = dt.get_default_dtype() if dtype is None else dtype
        if self.num_generated > 0:
            result = self._following(n, self.num_generated - 1, kind)
        else:
            result = self._first_point.to(kind)
            if n != 1:
                result = aten.cat((result, self._following(n - 1, 0, kind)), dim=-2)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: dt.dtype | None = None
    ) -> Tensor:
        """The next 2^m points; ValueError unless 2^k points have been drawn then, for some k."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2."
                f" {self.num_generated} points have been previously generated, then:"
                f" n={self.num_generated}+2**{m}={total}. If you still want to do this, please use"
                " 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Start again with the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        now = max(self.num_generated - 1, 0)
        then = max(self.num_generated + n - 1, 0)
        changed = (now ^ now >> 1) ^ (then ^ then >> 1)  # of the Gray code: one direction per bit
        bits = [j for j in range(_BITS) if changed >> j & 1]
        quasi = self.quasi.numpy()
        quasi ^= np.bitwise_xor.reduce(self.sobolstate.numpy()[:, bits], axis=1)
        self.num_generated += n
        return self

    def _following(self, n: int, first: int, kind: dt.dtype) -> Tensor:
        if kind not in (dt.float32, dt.float64):
            raise NotImplementedError(
                f"\"_sobol_engine_draw\" not implemented for '{kind.scalar_name}'"
            )
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: [{n}, {self.dimension}]"
            )
        changes = _changes(self.sobolstate.numpy(), first, n)
        points = np.bitwise_xor.accumulate(changes, axis=0) ^ self.quasi.numpy()
        if n:
            self.quasi = aten.from_numpy(points[-1].copy())
        return aten.from_numpy(points.astype(kind.np) * kind.np.type(2.0**-_BITS))

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
