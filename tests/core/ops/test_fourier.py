"""Fourier transforms: closed forms, NumPy's transforms, memory order, errors, derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl
from torchlab.testing import assert_close

ONE = "fft ifft rfft irfft hfft ihfft".split()


def signal(*shape, real=True):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape)
    return x if real else x + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_one_dimension_agrees_with_numpy(name, norm):
    x = signal(4, 6, real=name in ("rfft", "ihfft"))
    for n in (None, 4, 9):
        for dim in (0, -1):
            expected = getattr(np.fft, name)(x, n, dim, norm)
            assert_close(getattr(tl.fft, name)(tl.tensor(x), n, dim, norm), tl.tensor(expected))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_dimensions_agree_with_numpy(name):
    x = signal(4, 3, 6, real=name == "rfftn")
    for s, dim in ((None, None), ((5, 4), (0, 2)), ((3, 8), (2, 1)), (None, (1, 0))):
        axes = range(x.ndim) if dim is None else dim
        expected = getattr(np.fft, name)(x, s, tuple(axes))
        assert_close(getattr(tl.fft, name)(tl.tensor(x), s, dim), tl.tensor(expected))
    two = getattr(tl.fft, name[:-1] + "2")(tl.tensor(x))
    assert_close(two, tl.tensor(getattr(np.fft, name)(x, axes=(-2, -1))))


def test_a_cosine_has_two_lines_and_an_impulse_all():
    t = tl.arange(8) / 8
    spectrum = tl.fft.fft(tl.cos(2 * tl.pi * 2 * t))
    assert_close(spectrum.abs(), tl.tensor([0.0, 0, 4, 0, 0, 0, 4, 0]))
    assert_close(tl.fft.fft(tl.tensor([1, 0, 0])), tl.ones(3, dtype=tl.complex64))
    assert tl.fft.fft(tl.tensor([True, False])).dtype is tl.complex64
    assert tl.fft.rfft(tl.ones(4, dtype=tl.float64)).dtype is tl.complex128


def test_hfftn_and_ihfftn_undo_each_other():
    x = tl.tensor(signal(4, 3, 6))
    assert_close(tl.fft.hfftn(tl.fft.ihfftn(x), (4, 3, 6)), x)
    assert_close(tl.fft.hfft2(tl.fft.ihfft2(x), (3, 6)), x)


def test_transformed_dimensions_lie_innermost():
    x = tl.zeros(5, 10, 7)
    assert tl.fft.fft(x, dim=0).stride() == (1, 35, 5)
    assert tl.fft.rfft(x, dim=1).stride() == (42, 1, 6)
    assert tl.fft.fftn(x, dim=(1, 0)).stride() == (10, 1, 50)
    assert tl.fft.rfftn(x, dim=(1, 0)).stride() == (1, 3, 30)
    assert tl.fft.fft(x.to("meta"), dim=1).stride() == (70, 1, 10)


def test_frequencies_and_shifts():
    assert_close(tl.fft.fftfreq(5, 0.5), tl.tensor([0.0, 0.4, 0.8, -0.8, -0.4]))
    assert_close(tl.fft.rfftfreq(4, dtype=tl.float64), tl.tensor([0, 0.25, 0.5]).double())
    x = tl.arange(5)
    assert tl.fft.fftshift(x).tolist() == [3, 4, 0, 1, 2]
    assert tl.fft.ifftshift(tl.fft.fftshift(x)).tolist() == x.tolist()
    assert tl.fft.fftshift(tl.zeros(2, 3), dim=1).shape == (2, 3)


def test_out_is_filled_and_checked():
    x = tl.tensor(signal(6), dtype=tl.float32)
    out = tl.empty(0, dtype=tl.complex64)
    assert tl.fft.rfft(x, out=out) is out
    assert_close(out, tl.fft.rfft(x))
    with pytest.raises(RuntimeError, match="cast"):
        tl.fft.fft(x, out=tl.empty(6))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: tl.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda x: tl.fft.rfft(x.to(tl.complex64)), RuntimeError, "expects a real input"),
        (lambda x: tl.fft.ihfftn(x.to(tl.complex64)), RuntimeError, "floating-point dtypes"),
        (lambda x: tl.fft.fft(x, n=0), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda x: tl.fft.irfft(x[:, :1]), RuntimeError, "Invalid number of data points"),
        (lambda x: tl.fft.fft(x, dim=3), IndexError, "Dimension out of range"),
        (lambda x: tl.fft.fft(x[0, 0]), IndexError, "no dimensions"),
        (lambda x: tl.fft.fftn(x, (2,), (0, 1)), RuntimeError, "same length"),
        (lambda x: tl.fft.fftn(x, (2, 2, 2)), RuntimeError, "only has 2 dimensions"),
        (lambda x: tl.fft.fftn(x, dim=(0, -2)), RuntimeError, "unique"),
        (lambda x: tl.fft.rfftn(x, dim=()), RuntimeError, "at least one axis"),
        (lambda x: tl.fft.fft(x, norm="loud"), RuntimeError, "Invalid normalization mode"),
        (lambda x: tl.fft.fftfreq(3, dtype=tl.int64), RuntimeError, "floating point"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(tl.ones(2, 4))


def test_gradient_of_the_energy_is_twice_the_signal():
    x = tl.tensor(signal(4, 5), requires_grad=True)
    for f, n in ((tl.fft.fft, 5), (tl.fft.fftn, 20)):
        (g,) = tl.autograd.grad((f(x).abs() ** 2).sum(), x)
        assert_close(g, 2 * n * x.detach())
    assert tl.fft.rfft(x).grad_fn.name() == "FftR2CBackward0"
    assert tl.fft.irfft(tl.fft.rfft(x), 5).grad_fn.name() == "FftC2RBackward0"
