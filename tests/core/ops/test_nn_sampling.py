"""grid_sample against SciPy's interpolation, affine grids against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import ndimage

import torchlab as torch
import torchlab.nn.functional as F


def pixels(points: np.ndarray, size: tuple[int, ...], corners: bool) -> np.ndarray:
    """Grid coordinates (…, x y) as positions among the elements, rows first."""
    scaled = [
        (points[..., -1 - d] + 1) / 2 * (n - 1)
        if corners
        else ((points[..., -1 - d] + 1) * n - 1) / 2
        for d, n in enumerate(size)
    ]
    return np.stack(scaled)


@pytest.mark.parametrize(
    ("padding", "corners", "scipy_mode"),
    [
        ("zeros", True, "grid-constant"),
        ("zeros", False, "grid-constant"),
        ("border", True, "nearest"),
        ("border", False, "nearest"),
        ("reflection", True, "mirror"),
        ("reflection", False, "reflect"),
    ],
)
@pytest.mark.parametrize("size", [(5, 4), (3, 4, 5)])
def test_linear_sampling_is_scipys(
    padding: str, corners: bool, scipy_mode: str, size: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(3)
    image = rng.standard_normal(size)
    points = rng.uniform(-1.9, 1.9, (*(2, 3, 4)[: len(size)], len(size)))
    expected = ndimage.map_coordinates(
        image, pixels(points, size, corners), order=1, mode=scipy_mode
    )
    got = F.grid_sample(
        torch.tensor(image[None, None]),
        torch.tensor(points[None]),
        "bilinear",
        padding,
        corners,
    )
    np.testing.assert_allclose(got.numpy()[0, 0], expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_the_identity_gives_the_image_back(mode: str) -> None:
    x = torch.arange(24.0, dtype=torch.float64).reshape(1, 2, 3, 4)
    one = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]], dtype=torch.float64)
    grid = F.affine_grid(one, (1, 2, 3, 4), align_corners=True)
    np.testing.assert_allclose(F.grid_sample(x, grid, mode, "border", True).numpy(), x.numpy())


def test_cubic_sampling_of_a_line() -> None:
    """Keys's kernel reproduces lines for a = −1/2; for a = −3/4 the closed form is this."""
    x = torch.arange(9.0, dtype=torch.float64).reshape(1, 1, 1, 9).expand(1, 1, 5, 9)
    at = torch.tensor([[[[0.1, 0.0], [-0.33, 0.2]]]], dtype=torch.float64)
    got = F.grid_sample(x, at, "bicubic", "border", True).flatten().tolist()
    expected = []
    for position in (4.4, 2.68):
        t = position % 1
        expected.append(position - 0.25 * 2 * t * (1 - t) * (2 * t - 1))
    assert got == pytest.approx(expected)


def test_a_quarter_turn() -> None:
    turn = torch.tensor([[[0.0, -1, 0], [1, 0, 0]]])
    x = torch.tensor([[[[1.0, 2], [3, 4]]]])
    grid = F.affine_grid(turn, (1, 1, 2, 2), align_corners=False)
    assert F.grid_sample(x, grid, align_corners=False).tolist() == [[[[2.0, 4.0], [1.0, 3.0]]]]


def test_grids_without_corners_lie_at_the_centres() -> None:
    one = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]])
    grid = F.affine_grid(one, (1, 1, 2, 3, 4), align_corners=False)
    assert grid.shape == (1, 2, 3, 4, 3)
    assert grid[0, 0, 0, :, 0].tolist() == pytest.approx([-0.75, -0.25, 0.25, 0.75])
    assert grid[0, :, 0, 0, 2].tolist() == pytest.approx([-0.5, 0.5])


def test_a_point_that_is_nowhere_gives_nan_and_moves_nothing() -> None:
    x = torch.ones(1, 1, 2, 2, requires_grad=True)
    y = F.grid_sample(x, torch.tensor([[[[math.nan, 0.0]]]]), align_corners=True)
    assert math.isnan(y.item())
    y.backward()
    assert x.grad.tolist() == [[[[0, 0], [0, 0]]]]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_second_derivatives(mode: str) -> None:
    x = torch.randn(1, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    at = torch.tensor([[[[0.12, -0.4], [0.55, 0.31]]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda x, at: F.grid_sample(x, at, mode, "zeros", False), (x, at)
    )


def test_what_does_not_fit_is_refused() -> None:
    x, grid = torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2)
    with pytest.raises(ValueError, match="expected mode"):
        F.grid_sample(x, grid, "linear", align_corners=True)
    with pytest.raises(ValueError, match="expected padding_mode"):
        F.grid_sample(x, grid, padding_mode="mirror", align_corners=True)
    with pytest.raises(RuntimeError, match="same batch size"):
        F.grid_sample(x, torch.zeros(2, 2, 2, 2), align_corners=True)
    with pytest.raises(RuntimeError, match="size 2 in last dimension"):
        F.grid_sample(x, torch.zeros(1, 2, 2, 3), align_corners=True)
    with pytest.raises(RuntimeError, match="same dtype"):
        F.grid_sample(x, grid.double(), align_corners=True)
    with pytest.warns(UserWarning, match="align_corners"):
        F.grid_sample(x, grid)
    with pytest.raises(ValueError, match="2x3"):
        F.affine_grid(torch.zeros(1, 3, 3), (1, 1, 2, 2), align_corners=True)


def test_lanczos_weights() -> None:
    def kernel(t: np.ndarray) -> np.ndarray:
        return np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0)

    x = torch.zeros(1, 1, 1, 12)
    x[..., 5] = 1.0
    out = F.interpolate(x, (1, 24), mode="lanczos", antialias=True).flatten()
    # Twice as many elements: each lies a quarter of a step beside an old one.
    distances = 5 - (np.arange(24) / 2 - 0.25)
    wanted = kernel(distances) / kernel(np.arange(-3, 3) + 0.25).sum()
    np.testing.assert_allclose(out.numpy(), wanted, atol=1e-6)
    for given in ({"antialias": False}, {"antialias": True, "align_corners": True}):
        with pytest.raises(ValueError, match="Lanczos"):
            F.interpolate(x, (1, 24), mode="lanczos", **given)
