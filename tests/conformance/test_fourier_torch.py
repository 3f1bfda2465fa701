"""Fourier transforms and ranges against PyTorch: values, strides, types, errors."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import torchlab as tl

torch = pytest.importorskip("torch")

ONE = "fft ifft rfft irfft hfft ihfft".split()
RNG = np.random.default_rng(0)


def both(name, x, *args, **kwargs):
    """The results of both, or the classes of their exceptions."""
    found = []
    for lib in (torch, tl):
        f = lib
        for part in name.split("."):
            f = getattr(f, part)
        try:
            found.append(f(lib.from_numpy(x), *args, **kwargs))
        except (RuntimeError, IndexError, NotImplementedError, TypeError) as e:
            found.append(type(e))
    return found


def agree(name, x, *args, **kwargs):
    theirs, mine = both(name, x, *args, **kwargs)
    if isinstance(theirs, type) or isinstance(mine, type):
        assert theirs is mine, (name, x.shape, args, kwargs, theirs, mine)
        return
    assert tuple(mine.shape) == tuple(theirs.shape)
    assert mine.stride() == theirs.stride(), (name, x.shape, x.strides, args, kwargs)
    assert str(mine.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    np.testing.assert_allclose(
        mine.resolve_conj().numpy(),
        theirs.resolve_conj().numpy(),
        rtol=1e-5,
        atol=3e-5,
        equal_nan=True,
    )


def arrays():
    x = RNG.standard_normal((4, 3, 5, 2))
    for d in (np.float32, np.float64, np.complex64, np.int64):
        yield x.astype(d)
        yield x.astype(d).transpose(2, 0, 3, 1)


@pytest.mark.parametrize("name", ONE)
def test_one_dimension(name):
    for x in arrays():
        for n, dim, norm in itertools.product((None, 4, 7), (0, 2, -1), (None, "ortho")):
            agree(f"fft.{name}", x, n, dim, norm)
        for options in ({"n": 0}, {"n": -1}, {"dim": 4}, {"norm": "x"}):
            agree(f"fft.{name}", x, **options)


@pytest.mark.parametrize("name", ONE)
def test_several_dimensions(name):
    for x in arrays():
        for dim in itertools.chain.from_iterable(
            itertools.permutations(range(4), r) for r in (2, 3)
        ):
            agree(f"fft.{name}n", x, dim=dim)
        for s, dim in (
            ((2, 6), None),
            ((6, -1), (2, 0)),
            ((0, 1), None),
            ((2,), (1, 1)),
            (None, ()),
        ):
            agree(f"fft.{name}n", x, s, dim)
        agree(f"fft.{name}2", x)
        agree(f"fft.{name}2", x, (3, 3), norm="forward")


def test_short_time():
    x = RNG.standard_normal((2, 40)).astype(np.float32)
    c = (x + 1j * x[::-1]).astype(np.complex64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, hop, win, center, mode, one in itertools.product(
            (x, x[0], c),
            (None, 3),
            (None, 5),
            (True, False),
            ("reflect", "circular"),
            (None, False),
        ):
            options = {"center": center, "pad_mode": mode, "onesided": one, "return_complex": True}
            agree("stft", a, 8, hop, win, **options)
        s = RNG.standard_normal((2, 5, 9)).astype(np.complex64)
        for a, hop, win, center, length in itertools.product(
            (s, s[0]), (None, 3), (None, 6), (True, False), (None, 12, 60)
        ):
            agree("istft", a, 8, hop, win, center=center, length=length)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32"])
def test_linspace_has_the_same_bits(dtype):
    for a, b in [(4, -3), (1, -7), (-2, 5), (0.1, 7.3), (-19.7, 3)]:
        for steps in range(2, 60):
            theirs = torch.linspace(a, b, steps, dtype=getattr(torch, dtype))
            mine = tl.linspace(a, b, steps, dtype=getattr(tl, dtype))
            assert mine.tolist() == theirs.tolist(), (a, b, steps)
