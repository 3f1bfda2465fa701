"""Short-time transforms and window functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import windows as scipy_windows

import torchlab as tl
from torchlab.signal import windows
from torchlab.testing import assert_close


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize(
    "name, mine, theirs",
    [
        ("bartlett", {}, {}),
        ("blackman", {}, {}),
        ("cosine", {}, {}),
        ("exponential", {"tau": 2.0}, {"tau": 2.0}),
        ("gaussian", {"std": 1.5}, {"std": 1.5}),
        ("general_cosine", {"a": [0.4, 0.3, 0.2]}, {"a": [0.4, 0.3, 0.2]}),
        ("general_hamming", {"alpha": 0.6}, {"alpha": 0.6}),
        ("hamming", {}, {}),
        ("hann", {}, {}),
        ("kaiser", {"beta": 9.0}, {"beta": 9.0}),
        ("nuttall", {}, {}),
    ],
)
def test_windows_agree_with_scipy(name, mine, theirs, sym):
    for n in (1, 2, 7, 8):
        made = getattr(windows, name)(n, sym=sym, dtype=tl.float64, **mine)
        assert_close(made, tl.tensor(getattr(scipy_windows, name)(n, sym=sym, **theirs)))
    assert getattr(windows, name)(0, **mine).shape == (0,)
    with pytest.raises(ValueError, match="non-negative"):
        getattr(windows, name)(-1, **mine)
    with pytest.raises(ValueError, match="float32 or float64"):
        getattr(windows, name)(3, dtype=tl.int64, **mine)


def test_window_arguments():
    off = windows.exponential(3, center=1.0, sym=False)
    assert_close(off, tl.tensor([math.exp(-1), 1.0, math.exp(-1)]))
    for call in (
        lambda: windows.exponential(3, center=1.0),
        lambda: windows.exponential(3, tau=0),
        lambda: windows.gaussian(3, std=-1),
        lambda: windows.kaiser(3, beta=-1),
        lambda: windows.general_cosine(3, a=[]),
    ):
        with pytest.raises(ValueError):
            call()
    assert windows.hann(4, requires_grad=True).requires_grad


def test_periodic_windows_of_the_main_name_space():
    assert_close(tl.hann_window(4), tl.tensor([0.0, 0.5, 1.0, 0.5]))
    assert_close(tl.bartlett_window(5, False), tl.tensor([0.0, 0.5, 1.0, 0.5, 0.0]))
    assert_close(tl.hamming_window(4, True, 0.6, 0.4), tl.tensor([0.2, 0.6, 1.0, 0.6]))
    kaiser = tl.kaiser_window(5, False, 2.0, dtype=tl.float64)
    assert_close(kaiser, tl.tensor(np.kaiser(5, 2.0)))
    assert tl.blackman_window(1).tolist() == [1.0] and tl.hann_window(0).shape == (0,)
    with pytest.raises(RuntimeError, match="non-negative window_length"):
        tl.hann_window(-1)
    with pytest.raises(RuntimeError, match="floating point dtypes"):
        tl.hann_window(3, dtype=tl.int64)
    with pytest.raises(TypeError, match="must be int"):
        tl.hann_window(2.5)


def test_stft_of_a_tone_shows_its_frequency_in_every_frame():
    x = tl.cos(2 * tl.pi * 4 * tl.arange(64) / 16)
    s = tl.stft(x, 16, 4, window=tl.hann_window(16), center=False, return_complex=True)
    assert s.shape == (9, 13) and s.abs().argmax(0).tolist() == [4] * 13


def test_frames_are_transforms_of_windowed_pieces():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 30)), np.hamming(6)
    s = tl.stft(tl.tensor(x), 8, 3, 6, tl.tensor(w), center=False, return_complex=True)
    full = np.zeros(8)
    full[1:7] = w
    expected = np.stack([np.fft.rfft(x[:, t : t + 8] * full) for t in range(0, 23, 3)], -1)
    assert_close(s, tl.tensor(expected))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "constant", "circular"])
def test_centered_frames_are_padded(mode):
    x = np.arange(10.0)
    how = {"reflect": "reflect", "replicate": "edge", "constant": "constant", "circular": "wrap"}
    padded = np.pad(x, 2, how[mode])
    ones = tl.ones(4, dtype=tl.float64)
    a = tl.stft(tl.tensor(x), 4, 2, window=ones, pad_mode=mode, return_complex=True)
    b = tl.stft(tl.tensor(padded), 4, 2, window=ones, center=False, return_complex=True)
    assert_close(a, b)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("is_complex", [False, True])
def test_istft_undoes_stft(normalized, is_complex):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 50)) + (1j * rng.standard_normal((2, 50)) if is_complex else 0)
    options = {"n_fft": 12, "hop_length": 3, "window": tl.hann_window(12, dtype=tl.float64)}
    x = tl.tensor(x)
    s = x.stft(**options, normalized=normalized, return_complex=True)
    back = s.istft(**options, normalized=normalized, length=50, return_complex=is_complex)
    assert_close(back, x)


def test_gradients_of_both():
    w = tl.hann_window(6, dtype=tl.float64)
    x = tl.tensor(np.random.default_rng(2).standard_normal((1, 14)), requires_grad=True)

    def there(x):
        return tl.view_as_real(tl.stft(x, 6, 2, window=w, return_complex=True))

    def and_back(x):
        return tl.istft(tl.stft(x, 6, 2, window=w, return_complex=True) ** 2, 6, 2, window=w)

    assert tl.autograd.gradcheck(there, (x,)) and tl.autograd.gradcheck(and_back, (x,))


def test_refused():
    x, w = tl.ones(2, 20), tl.ones(8)
    s = tl.stft(x, 8, window=w, return_complex=True)
    for call, message in (
        (lambda: tl.stft(x, 8, window=w), "return_complex"),
        (lambda: tl.stft(x, 8, 0, window=w, return_complex=True), "hop_length > 0"),
        (lambda: tl.stft(x, 8, 2, 9, window=w, return_complex=True), "win_length <= n_fft"),
        (lambda: tl.stft(x, 8, 2, 6, window=w, return_complex=True), "1D window"),
        (lambda: tl.stft(x.long(), 8, window=w, return_complex=True), "floating point or complex"),
        (lambda: tl.stft(x[None], 8, window=w, return_complex=True), "1D or 2D"),
        (lambda: tl.istft(x, 8, window=w), "complex-valued input"),
        (lambda: tl.istft(s, 10, window=w), "frequency dimension"),
        (lambda: tl.istft(s, 8, 9, window=w), "hop_length <= win_length"),
        (lambda: tl.istft(s, 8, window=tl.zeros(8)), "overlap add"),
        (lambda: tl.istft(s, 8, window=w, return_complex=True), "onesided"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.warns(UserWarning, match="no window was given"):
        tl.stft(x, 8, return_complex=True)
