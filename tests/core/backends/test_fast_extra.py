"""The extra `fast`: what its libraries compute against NumPy. Where they are not installed, the
tests hold that nothing is loaded and NumPy computes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from torchlab._core.backends import mkl, onednn
from torchlab._core.ops import convolution, linalg

rng = np.random.default_rng(7)

GEOMETRIES = [  # input, weight, stride, padding, dilation, groups
    ((2, 3, 9), (4, 3, 3), (1,), (1,), (1,), 1),
    ((2, 8, 9, 7), (6, 8, 3, 2), (2, 1), (1, 0), (1, 2), 1),
    ((1, 8, 10, 10), (8, 4, 3, 3), (3, 2), (2, 1), (2, 1), 2),
    ((2, 4, 5, 6, 4), (8, 4, 2, 3, 1), (1, 2, 1), (0, 1, 0), (1, 1, 1), 1),
]


def _numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "fits", lambda *arrays: False)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_convolutions(geometry, channels_last, monkeypatch):
    xs, ws, *rest = geometry
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (xs, ws))
    if channels_last:
        last = (0, *range(2, x.ndim), 1)
        x = np.ascontiguousarray(x.transpose(last)).transpose(np.argsort(last))
    y = convolution.conv_forward(np, x, w, *rest)
    g = rng.standard_normal(y.shape).astype(np.float32)
    gx = convolution.conv_input_grad(np, g, w, xs, *rest)
    gw = convolution.conv_weight_grad(np, g, x, ws, *rest)
    _numpy(monkeypatch)
    x, w, g = (a.astype(np.float64) for a in (x, w, g))
    np.testing.assert_allclose(y, convolution.conv_forward(np, x, w, *rest), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        gx, convolution.conv_input_grad(np, g, w, xs, *rest), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        gw, convolution.conv_weight_grad(np, g, x, ws, *rest), rtol=1e-4, atol=1e-4
    )


def test_convolutions_of_several_sizes_in_turn(monkeypatch):
    calls = []
    for n, (xs, ws, *rest) in enumerate(GEOMETRIES * 2):
        xs = (xs[0] + n % 3, *xs[1:])
        x, w = (rng.standard_normal(s).astype(np.float32) for s in (xs, ws))
        g = rng.standard_normal(convolution.conv_forward(np, x, w, *rest).shape)
        calls.append((x, w, g.astype(np.float32), rest))

    def all_of_them(exactly):
        for x, w, g, rest in calls:
            x, w, g = (a.astype(np.float64) if exactly else a for a in (x, w, g))
            with onednn.first_argument_stays():
                gx = convolution.conv_input_grad(np, g, w, x.shape, *rest)
                gw = convolution.conv_weight_grad(np, g, x, w.shape, *rest)
            yield convolution.conv_forward(np, x, w, *rest)
            yield gx
            yield gw
            g *= 2  # the next time it is read anew
            yield convolution.conv_weight_grad(np, g, x, w.shape, *rest)
            if not exactly:
                g /= 2

    found = list(all_of_them(False))
    _numpy(monkeypatch)
    for got, exact in zip(found, all_of_them(True), strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-3)


def test_a_first_argument_that_is_gone_is_not_taken_for_the_next_one():
    w = rng.standard_normal((8, 8, 3, 3)).astype(np.float32)
    rest = ((1, 1), (0, 0), (1, 1), 1)
    values = [rng.standard_normal((2, 8, 6, 6)).astype(np.float32) for _ in range(4)]
    expected = [convolution.conv_input_grad(np, g, w, (2, 8, 8, 8), *rest) for g in values]
    with onednn.first_argument_stays():
        for g, wanted in zip(values, expected, strict=True):  # each copy ends with its call
            got = convolution.conv_input_grad(np, g.copy(), w, (2, 8, 8, 8), *rest)
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_any_layout(dtype):
    a = rng.standard_normal((130, 140)).astype(dtype)
    b = rng.standard_normal((140, 150)).astype(dtype)
    wide = rng.standard_normal((140, 300)).astype(dtype)
    for left, right in (
        (a, b),
        (np.asfortranarray(a), b),
        (a, np.asfortranarray(b)),
        (a, wide[:, :150]),
        (a, wide[:, ::2]),
    ):
        exact = np.einsum("ij,jk->ik", left.astype(np.float64), right.astype(np.float64))
        np.testing.assert_allclose(linalg.mm.kernel(np, left, right), exact, rtol=1e-4, atol=1e-4)


def test_nothing_is_loaded_where_it_is_switched_off():
    code = (
        "from torchlab._core.backends import mkl, onednn; import numpy as np;"
        "a = np.ones((256, 256), np.float32);"
        "assert mkl.product(a, a) is None and not onednn.fits(a)"
    )
    env = dict(os.environ, TORCHLAB_MKL="0", TORCHLAB_ONEDNN="0")
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0


def test_a_forked_child_uses_numpy(monkeypatch):
    x = np.ones((1, 1, 4, 4), np.float32)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not onednn.fits(x)
    assert mkl.product(np.ones((256, 256)), np.ones((256, 256))) is None
