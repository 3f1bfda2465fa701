"""`torch.Generator`: the random stream, word for word PyTorch's on the CPU.

The engine is mt19937, seeded with the low 32 bits of the seed. A draw takes 32-bit words `w` in
order; `w64` is two of them, the first in the high half. From these come

    u24 = (w & (2^24 - 1)) / 2^24          float32 and the 16-bit floats
    u53 = (w64 & (2^53 - 1)) / 2^53        float64, and whatever PyTorch computes in double

and from those the distributions below. Each method says how many words it consumes, since the next
draw depends on it. All methods return one-dimensional NumPy arrays (contiguous; the caller shapes
them) and hold the generator's lock while they draw. Verified against PyTorch 2.13 on x86-64.
"""

from __future__ import annotations

import math
import os
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from torchlab._core.box_muller import box_muller_float32, fma64
from torchlab._core.device import concrete
from torchlab._core.device import device as Device
from torchlab._core.forks import free_at_fork

DEFAULT_SEED = 67280421310721
_WORDS = 624
_MASK24, _MASK53 = np.uint32(2**24 - 1), np.uint64(2**53 - 1)
# From here on PyTorch takes two words for an integer, so that the remainder is fair enough.
_WIDE_RANGE = 1 << 28
_PIECE = 1 << 15  # words in one pass
_SMALL = 256
_LONG = 4096  # words from which the compiled twister is taken
compiled: Callable[[], Any] | None = None
"""Gives the compiled functions of codegen.twister, or None; the operators of random numbers set
it."""
_STATE = np.dtype([
    ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("key", "<u8", (_WORDS,)),
    ("normal_x", "<f8"), ("normal_y", "<f8"), ("normal_rho", "<f8"), ("normal_is_valid", "<i8"),
    ("next_float", "<f4"), ("next_float_is_valid", "<i4"),
])  # fmt: skip
# random_() without bounds: the largest integer up to which a dtype holds all, plus one.
_RANDOM_BOUND = {
    "bool": 2, "uint8": 2**8, "int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63,
    "float16": 2**11 + 1, "bfloat16": 2**8 + 1, "float32": 2**24 + 1, "float64": 2**53 + 1,
}  # fmt: skip


class Generator:
    """A stream of random numbers: `Generator("cpu").manual_seed(0)`."""

    __module__ = "torchlab"

    def __init__(self, device: str | Device = "cpu") -> None:
        self._device = concrete(Device(device))
        self._seed = DEFAULT_SEED
        # NumPy's bit generator, made at the first draw: numpy.random takes long to import.
        self._engine: np.random.MT19937 | None = None
        self._legacy: np.random.RandomState | None = None
        self._next_normal: float | None = None
        self._lock = free_at_fork(threading.RLock())

    @property
    def device(self) -> Device:
        """The device whose tensors this generator fills."""
        return self._device

    def __repr__(self) -> str:
        return (
            f"<torchlab._C.Generator object at {id(self):#x}, device={self._device},"
            f" initial_seed={self._seed}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self._device), self.get_state())

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # What PyTorch's files hold: seed, offset (None on the CPU), state as a tensor.
        self.set_state(np.ascontiguousarray(getattr(state[2], "_a", state[2])))

    # Seeds and state

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from `seed`, in [-2^63, 2^64); a negative one counts from 2^64."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = seed.__index__()
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"manual_seed: the seed {seed} is outside [-2**63, 2**64): "
                             "Overflow when unpacking long long")  # fmt: skip
        with self._lock:
            self._seed = seed % 2**64
            self._next_normal = None
            if self._legacy is not None:
                self._legacy.seed(self._seed & 0xFFFFFFFF)
        return self

    def seed(self) -> int:
        """Restart from a seed that the operating system chose, and return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of this stream."""
        return self._seed

    def get_state(self) -> np.ndarray:
        """The state in PyTorch's own layout: uint8 of length 5056; PyTorch can load it."""
        with self._lock:
            engine = self._ready()._bit_generator.state["state"]
            record = np.zeros((), _STATE)
            pos = int(engine["pos"])
            # After seeding, PyTorch's engine stands at the start of a block that is not yet mixed.
            fresh = pos == _WORDS and np.array_equal(engine["key"], _seed_key(self._seed))
            record["seed"], record["seeded"], record["key"] = self._seed, 1, engine["key"]
            record["next"], record["left"] = (0, 1) if fresh else (pos, _WORDS + 1 - pos)
            if self._next_normal is not None:
                record["normal_y"], record["normal_is_valid"] = self._next_normal, 1
            return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state that `get_state`, ours or PyTorch's, returned."""
        if not isinstance(state, np.ndarray):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, not an array of {state.dtype}")
        if state.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), _STATE)[0]
        left, following = int(record["left"]), int(record["next"])
        if not (record["seeded"] and 0 < left <= _WORDS and following <= _WORDS):
            raise RuntimeError("Invalid mt19937 state")
        with self._lock:
            pos = _WORDS if left == 1 else following
            self._ready()._bit_generator.state = {
                "bit_generator": "MT19937",
                "state": {"key": record["key"].astype(np.uint32), "pos": pos},
            }
            self._seed = int(record["seed"])
            valid = record["normal_is_valid"]
            self._next_normal = float(record["normal_y"]) if valid else None

    def clone_state(self) -> Generator:
        """A new generator that will draw what this one would."""
        other = Generator(self._device)
        other.set_state(self.get_state())
        return other

    def _ready(self) -> np.random.RandomState:
        if self._legacy is None:
            self._engine = np.random.MT19937(0)
            # RandomState's streams are frozen by NumPy's compatibility policy (NEP 19).
            self._legacy = np.random.RandomState(self._engine)
            self._legacy.seed(self._seed & 0xFFFFFFFF)
        return self._legacy

    # Words

    def words(self, n: int) -> np.ndarray:
        """`n` 32-bit words, uint32."""
        with self._lock:
            legacy = self._ready()
            if n <= _SMALL:
                assert self._engine is not None
                return self._engine.random_raw(n).astype(np.uint32)
            fast = self._compiled(n)
            if fast is None:
                return legacy.randint(0, 2**32, n, dtype=np.uint32)
            out = np.empty(n, np.uint32)
            fast.words(self._engine.ctypes.state_address, out)  # type: ignore[union-attr]
            return out

    def _compiled(self, n: int) -> Any:
        return compiled() if n >= _LONG and compiled is not None else None

    def words64(self, n: int) -> np.ndarray:
        """`n` 64-bit words, uint64, each from two of 32 bits."""
        with self._lock:
            legacy = self._ready()
            if n <= _SMALL:
                assert self._engine is not None
                raw = self._engine.random_raw(2 * n)
                return (raw[0::2] << np.uint64(32)) | raw[1::2]
            if self._compiled(2 * n) is None:
                return legacy.randint(0, 2**64, n, dtype=np.uint64)
            words = self.words(2 * n).astype(np.uint64)
            words[0::2] <<= np.uint64(32)
            return words[0::2] | words[1::2]

    def _u24(self, n: int) -> np.ndarray:
        with self._lock:
            fast = self._compiled(n)
            if fast is not None:
                self._ready()
                out = np.empty(n, np.float32)
                fast.uniforms(self._engine.ctypes.state_address, out)  # type: ignore[union-attr]
                return out
        return _uniforms(n, self.words, _MASK24, np.float32(2.0**-24))

    def _u53(self, n: int) -> np.ndarray:
        return _uniforms(n, self.words64, _MASK53, np.float64(2.0**-53))

    # Uniform

    def uniform(
        self, n: int, dtype: DTypeLike = np.float32, from_: float = 0.0, to: float = 1.0
    ) -> np.ndarray:
        """`n` numbers in [from_, to): one word each, float64 two."""
        dtype = np.dtype(dtype)
        if dtype == np.float64:
            uniforms = self._u53(n)
            values = uniforms if (from_, to) == (0, 1) else fma64(uniforms, to - from_, from_)
        else:
            uniforms = self._u24(n)
            if (from_, to) != (0, 1):
                low = np.float32(from_)
                wide = np.multiply(uniforms, np.float32(to) - low, dtype=np.float64)
                wide += low
                uniforms = wide.astype(np.float32)
            values = uniforms.astype(dtype, copy=False)
        # Rounding can reach the excluded bound; PyTorch then gives the other one.
        values[values == dtype.type(to)] = dtype.type(from_)
        return values

    def random(self, n: int, dtype: DTypeLike = np.int64) -> np.ndarray:
        """`random_()`: integers from 0 to the largest that the dtype holds exactly.

        One word each; int64 and float64 two. Raises NotImplementedError, as PyTorch, for others.
        """
        dtype = np.dtype(dtype)
        bound = _RANDOM_BOUND.get(dtype.name)
        if bound is None:
            raise NotImplementedError(f'random_: "random_kernel_cpu" not implemented for {dtype}')
        if dtype.itemsize == 8:
            return (self.words64(n) % np.uint64(bound)).astype(dtype)
        return (self.words(n) % np.uint32(bound)).astype(dtype)

    def randint(self, n: int, low: int, high: int, dtype: DTypeLike = np.int64) -> np.ndarray:
        """`n` integers in [low, high): one word each, two where the range is 2^28 or wider.

        `high` may be 2^63 (with low -2^63: all of int64). Raises RuntimeError for an empty range.
        """
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
            )
        dtype, span = np.dtype(dtype), high - low
        if span < _WIDE_RANGE:
            values = (self.words(n) % np.uint32(span)).astype(np.int64)
            if low:
                values += low
            return values.astype(dtype, copy=False)
        wide = self.words64(n)
        if span < 2**64:
            wide %= np.uint64(span)
            wide += np.uint64(low % 2**64)  # wraps around, as two's complement does
        return wide.view(np.int64).astype(dtype, copy=False)

    def randperm(self, n: int, dtype: DTypeLike = np.int64) -> np.ndarray:
        """A permutation of 0 … n-1 (Fisher and Yates, from the front): n - 1 words."""
        if n < 2:
            return np.arange(n, dtype=dtype)
        index = np.arange(n - 1, dtype=np.uint32)
        other = self.words(n - 1)
        other %= np.uint32(n) - index
        other += index
        # Each swap depends on those before it. An `array` keeps the numbers side by side: a list
        # would touch an object somewhere in memory for each, an ndarray box a scalar.
        order = array("i" if n < 2**31 else "q", range(n))
        for i, j in enumerate(other.tolist()):
            order[i], order[j] = order[j], order[i]
        return np.array(order).astype(dtype, copy=False)

    # Normal

    def normal(
        self, n: int, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike = np.float32,
        contiguous: bool = True,
    ) -> np.ndarray:  # fmt: skip
        """`n` normal numbers, as `randn` and `normal_` draw them.

        Fewer than 16, or for a tensor that is not contiguous: pairs, four words a pair; the second
        of a pair that was not needed is kept for the next such call. Otherwise one word each
        (float64 two), and if n is no multiple of 16, the last 16 places are drawn again: 16 more
        (the 16-bit floats take no words for those places the first time).
        """
        dtype = np.dtype(dtype)
        with self._lock:
            if n < 16 or not contiguous:
                z = self._normal_pairs(n)
                return _cast(fma64(z, std, mean), dtype)
            if dtype == np.float64:
                draw, transform = self._u53, _box_muller_float64
            else:
                draw, transform = self._u24, box_muller_float32
            whole = n - n % 16
            # For 16-bit floats PyTorch does not draw at first what it would draw again.
            values = draw(whole if dtype.itemsize == 2 else n)
            if whole != n:
                values = np.concatenate((values[:whole], draw(16)))
            transform(values, mean, std)
            if whole != n:
                last = values[whole:].copy()
                values = values[:n]
                values[n - 16 :] = last
            return values.astype(dtype, copy=False)

    def normal_into(self, out: np.ndarray, mean: float = 0.0, std: float = 1.0) -> None:
        """Fill `out` (any strides, in logical order), by the rule for its size and contiguity."""
        contiguous = out.flags.c_contiguous
        out[...] = self.normal(out.size, mean, std, out.dtype, contiguous).reshape(out.shape)

    def log_normal(
        self, n: int, mean: float = 1.0, std: float = 2.0, dtype: DTypeLike = np.float32
    ) -> np.ndarray:
        """exp of normal numbers, which are always drawn in pairs (see `normal`)."""
        with self._lock:
            z = self._normal_pairs(n)
        return _cast(_libm(math.exp, fma64(z, std, mean), dtype), dtype)

    def _normal_pairs(self, n: int) -> np.ndarray:
        """`n` standard normals in float64, through the kept one; two u53 a pair."""
        out = np.empty(n)
        start = 0
        if n and self._next_normal is not None:
            out[0] = self._next_normal
            self._next_normal = None
            start = 1
        missing = n - start
        pairs = (missing + 1) // 2
        if 0 < pairs <= 8:  # the usual short draw: plain floats are three times as fast as arrays
            it = iter(self._u53(2 * pairs).tolist())
            both = []
            for u, v in zip(it, it, strict=True):
                radius, theta = math.sqrt(-2.0 * math.log1p(-v)), 2 * math.pi * u
                both += (radius * math.cos(theta), radius * math.sin(theta))
            out[start:] = both[:missing]
            if missing % 2:
                self._next_normal = both[-1]
        elif pairs:
            uniforms = self._u53(2 * pairs)
            radius = np.sqrt(-2.0 * _libm(math.log1p, -uniforms[1::2], np.float64))
            theta = (2 * math.pi) * uniforms[0::2]
            both = np.empty((pairs, 2))
            both[:, 0] = radius * _libm(math.cos, theta, np.float64)
            both[:, 1] = radius * _libm(math.sin, theta, np.float64)
            out[start:] = both.ravel()[:missing]
            if missing % 2:
                self._next_normal = float(both[-1, 1])
        return out

    # Other distributions: each number takes one u53 (two words) unless said otherwise

    def exponential(self, n: int, lambd: float = 1.0, dtype: DTypeLike = np.float32) -> np.ndarray:
        """Exponential numbers of rate `lambd`: -log1p(-u53) / lambd."""
        values = _libm(math.log1p, -self._u53(n), dtype)
        values *= -1.0 / lambd
        return _cast(values, dtype)

    def bernoulli_p(self, n: int, p: float) -> np.ndarray:
        """`bernoulli_(p)`, and the mask of dropout: bool, true with probability p."""
        return self._u53(n) < p

    def bernoulli_tensor(self, p: np.ndarray) -> np.ndarray:
        """`bernoulli(p)`: bool of p's shape. One word an element, float64 two."""
        draw = self._u53 if p.dtype == np.float64 else self._u24
        return draw(p.size).reshape(p.shape) < p.astype(np.promote_types(np.float32, p.dtype))

    def geometric(self, n: int, p: float, dtype: DTypeLike = np.float32) -> np.ndarray:
        """The number of trials up to the first success: ceil(log(u53) / log1p(-p))."""
        with np.errstate(divide="ignore"):
            trials = np.ceil(np.log(self._u53(n)) / math.log1p(-p))
        return trials.astype(dtype)

    def cauchy(
        self, n: int, median: float = 0.0, sigma: float = 1.0, dtype: DTypeLike = np.float32
    ) -> np.ndarray:
        """Cauchy numbers: median + sigma·tan(π(u53 - 1/2))."""
        epsilon = np.finfo(np.float64).eps
        uniforms = np.clip(self._u53(n), epsilon, 1 - epsilon)
        values = _libm(math.tan, math.pi * (uniforms - 0.5), dtype)
        return _cast(fma64(values, sigma, median), dtype)

    def multinomial(self, p: np.ndarray, k: int, replacement: bool = False) -> np.ndarray:
        """`k` indices (int64) for each row of weights `p`, (n,) or (m, n) of floats.

        Without replacement, or for one index: the largest of p / exponential numbers. With it: the
        place of u53 in the running sum. The caller checks that the weights are valid.
        """
        rows = p.reshape(-1, p.shape[-1])
        shape = (*p.shape[:-1], k)
        if not replacement or k == 1:
            q = self.exponential(rows.size, 1.0, p.dtype).reshape(rows.shape)
            with np.errstate(divide="ignore", invalid="ignore"):
                score = rows / q
            if k == 1:
                return score.argmax(-1).astype(np.int64).reshape(shape)
            return np.argsort(-score, axis=-1, kind="stable")[:, :k].astype(np.int64).reshape(shape)
        uniforms = self._u53(rows.shape[0] * k).reshape(-1, k)
        sums = np.add.accumulate(rows, axis=-1, dtype=np.promote_types(np.float32, rows.dtype))
        sums /= sums[:, -1:].copy()
        sums[:, -1] = 1
        chosen = np.empty((rows.shape[0], k), np.int64)
        for i in range(rows.shape[0]):
            chosen[i] = np.searchsorted(sums[i].astype(np.float64), uniforms[i], "left")
        return chosen.reshape(shape)

    def poisson(self, rate: np.ndarray) -> np.ndarray:
        """Poisson numbers of the given rates (float64, any shape); a varying number of u53 each.

        Below a rate of 10 by multiplying uniforms (Knuth), above by transformed rejection:
        W. Hörmann, "The transformed rejection method for generating Poisson random
        variables", 1993.
        """
        with self._lock:
            before = self.get_state()
            taken = 0

            def stream() -> Iterator[float]:
                nonlocal taken
                while True:
                    for u in self._u53(1024).tolist():
                        taken += 1
                        yield u

            uniforms = stream()
            flat = rate.ravel().tolist()
            values = np.array([_poisson(r, uniforms) for r in flat], np.float64)
            # Chunks ran ahead of what was used: go back and take exactly that.
            self.set_state(before)
            self.words64(taken)
        return values.reshape(rate.shape)


def _uniforms(n: int, words: Callable[[int], np.ndarray], mask: Any, unit: Any) -> np.ndarray:
    """`n` numbers in [0, 1) from the low bits of words. In pieces: no second array of all the
    words, and what a piece reads is in the cache."""
    out = np.empty(n, type(unit))
    for start in range(0, n, _PIECE):
        piece = out[start : start + _PIECE]
        bits = words(len(piece))
        bits &= mask
        np.multiply(bits, unit, out=piece, casting="unsafe", dtype=piece.dtype)
    return out


def _poisson(rate: float, uniforms: Iterator[float]) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:
        limit, count, product = math.exp(-rate), 0, next(uniforms)
        while product > limit:
            count += 1
            product *= next(uniforms)
        return float(count)
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = next(uniforms) - 0.5, next(uniforms)
        u_s = 0.5 - abs(u)
        k = math.floor((2 * a / u_s + b) * u + rate + 0.43) if u_s else -1
        if u_s >= 0.07 and v <= v_r:
            return float(k)
        if k < 0 or (u_s < 0.013 and v > u_s) or v == 0:
            continue
        accept = math.log(v) + math.log(inverse_alpha) - math.log(a / (u_s * u_s) + b)
        if accept <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


def _box_muller_float64(uniforms: np.ndarray, mean: float, std: float) -> None:
    """As `box_muller_float32`, with the C library's functions."""
    blocks = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * _libm(math.log, 1.0 - blocks[:, 0], np.float64))
    theta = (2 * math.pi) * blocks[:, 1]
    blocks[:, 0] = fma64(radius * _libm(math.cos, theta, np.float64), std, mean)
    blocks[:, 1] = fma64(radius * _libm(math.sin, theta, np.float64), std, mean)


_VECTORISED = {
    math.log: np.log, math.log1p: np.log1p, math.exp: np.exp,
    math.cos: np.cos, math.sin: np.sin, math.tan: np.tan,
}  # fmt: skip


def _libm(function: Any, x: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """function(x) in float64, on its way to `dtype`.

    NumPy's vectorised functions may differ from the C library's, which PyTorch calls, in the last
    bit of float64. That bit is lost on the way to a shorter type; only for float64 it is worth a
    Python call an element (70 ns).
    """
    if np.dtype(dtype) != np.float64:
        return _VECTORISED[function](x)
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _cast(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """float64 to `dtype`; to the 16-bit floats through float32, as PyTorch (it rounds twice)."""
    dtype = np.dtype(dtype)
    if dtype.itemsize == 2:
        values = values.astype(np.float32)
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def _seed_key(seed: int) -> np.ndarray:
    """The engine's 624 words right after seeding."""
    return np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=True)[1]


def _rebuild(device: str, state: np.ndarray) -> Generator:
    generator = Generator(device)
    generator.set_state(state)
    return generator


default_generator = Generator()
default_generator.seed()
