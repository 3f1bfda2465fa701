"""Random maps of the plane, and blur.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#geometry
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms._containers import chance, integer, uniform
from torchlab.vision.transforms._image import InterpolationMode, interpolation_mode, is_tensor


def angle_range(x: Any, name: str, sizes: tuple[int, ...] = (2,)) -> list[float]:
    """[from, to] in degrees; one number x means (-x, x)."""
    if isinstance(x, numbers.Number):
        if x < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        x = [-x, x]  # type: ignore[operator]
    else:
        check_sequence(x, name, sizes)
    return [float(v) for v in x]


def check_sequence(x: Any, name: str, sizes: tuple[int, ...]) -> None:
    wanted = " or ".join(map(str, sizes))
    if not isinstance(x, Sequence):
        raise TypeError(f"{name} should be a sequence of length {wanted}.")
    if len(x) not in sizes:
        raise ValueError(f"{name} should be a sequence of length {wanted}.")


def _checked_fill(fill: Any) -> Any:
    if fill is None:
        return 0
    if not isinstance(fill, (Sequence, numbers.Number)):
        raise TypeError("Fill should be either a sequence or a number.")
    return fill


def _fill_for(img: Any, fill: Any) -> Any:
    """A number becomes one value for each channel of a tensor."""
    if not is_tensor(img):
        return fill
    if isinstance(fill, (int, float)):
        return [float(fill)] * F.get_dimensions(img)[0]
    return [float(f) for f in fill]


class RandomRotation(nn.Module):
    """`functional.rotate` by an angle drawn from `degrees` (from, to)."""

    def __init__(
        self,
        degrees: Any,
        interpolation: Any = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.interpolation = interpolation_mode(interpolation)
        self.degrees = angle_range(degrees, "degrees")
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center
        self.expand = expand
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """An angle."""
        return float(uniform(float(degrees[0]), float(degrees[1])))

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(degrees={self.degrees}"
            f", interpolation={self.interpolation.value}, expand={self.expand}"
            f"{'' if self.center is None else f', center={self.center}'}"
            f"{'' if self.fill is None else f', fill={self.fill}'})"
        )


class RandomAffine(nn.Module):
    """`functional.affine` with values drawn from ranges.

    degrees: (from, to). translate: the largest move, as parts of width and height. scale: (from,
    to). shear: (from, to) for x, or also (from, to) for y, in degrees.
    """

    def __init__(
        self,
        degrees: Any,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Any = None,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.interpolation = interpolation_mode(interpolation)
        self.degrees = angle_range(degrees, "degrees")
        if translate is not None:
            check_sequence(translate, "translate", (2,))
            if not all(0.0 <= t <= 1.0 for t in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            check_sequence(scale, "scale", (2,))
            if any(s <= 0 for s in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear = None if shear is None else angle_range(shear, "shear", (2, 4))
        self.fill = _checked_fill(fill)
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """(angle, moves, scale, shears) of a draw; `img_size` is (width, height)."""
        angle = float(uniform(float(degrees[0]), float(degrees[1])))
        dx = dy = 0
        if translate is not None:
            far_x, far_y = float(translate[0] * img_size[0]), float(translate[1] * img_size[1])
            dx, dy = round(uniform(-far_x, far_x)), round(uniform(-far_y, far_y))
        scale = 1.0 if scale_ranges is None else float(uniform(*scale_ranges))
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = float(uniform(shears[0], shears[1]))
            if len(shears) == 4:
                shear_y = float(uniform(shears[2], shears[3]))
        return angle, (dx, dy), scale, (shear_x, shear_y)

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        size = F.get_image_size(img)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, size)
        return F.affine(
            img, *drawn, interpolation=self.interpolation, fill=fill, center=self.center
        )

    def __repr__(self) -> str:
        shown = f"degrees={self.degrees}"
        for name in ("translate", "scale", "shear"):
            if getattr(self, name) is not None:
                shown += f", {name}={getattr(self, name)}"
        if self.interpolation != InterpolationMode.NEAREST:
            shown += f", interpolation={self.interpolation.value}"
        if self.fill != 0:
            shown += f", fill={self.fill}"
        if self.center is not None:
            shown += f", center={self.center}"
        return f"{type(self).__name__}({shown})"


class RandomPerspective(nn.Module):
    """`functional.perspective` with probability `p`: each corner goes inwards by up to
    `distortion_scale` (0 to 1) times half of the side."""

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.p = p
        self.interpolation = interpolation_mode(interpolation)
        self.distortion_scale = distortion_scale
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(
        width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The corners (top left, top right, bottom right, bottom left), before and after."""
        x, y = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        left, right = (0, x + 1), (width - x - 1, width)
        top, bottom = (0, y + 1), (height - y - 1, height)
        corners = ((left, top), (right, top), (right, bottom), (left, bottom))
        w, h = width - 1, height - 1
        return (
            [[0, 0], [w, 0], [w, h], [0, h]],
            [[integer(*xs), integer(*ys)] for xs, ys in corners],
        )

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        if chance() >= self.p:
            return img
        _, height, width = F.get_dimensions(img)
        start, end = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, start, end, self.interpolation, fill)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


def kernel_sides(kernel_size: Any) -> Any:
    """(x, y), which may be given as one number; both odd."""
    if isinstance(kernel_size, numbers.Number):
        kernel_size = (int(kernel_size), int(kernel_size))  # type: ignore[call-overload]
    elif len(kernel_size) == 1:
        kernel_size = (kernel_size[0], kernel_size[0])
    elif len(kernel_size) != 2:
        raise ValueError("Kernel size should be a tuple/list of two integers")
    if any(k <= 0 or k % 2 == 0 for k in kernel_size):
        raise ValueError("Kernel size value should be an odd and positive number.")
    return kernel_size


class GaussianBlur(nn.Module):
    """`functional.gaussian_blur` with sigma drawn from (from, to)."""

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = kernel_sides(kernel_size)
        if isinstance(sigma, numbers.Number):
            if sigma <= 0:  # type: ignore[operator]
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)
        elif isinstance(sigma, Sequence) and len(sigma) == 2:
            if not 0.0 < sigma[0] <= sigma[1]:
                raise ValueError("sigma values should be positive and of the form (min, max).")
        else:
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        self.sigma = sigma

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """A sigma."""
        return uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        sigma = self.get_params(*self.sigma)
        return F.gaussian_blur(img, self.kernel_size, [sigma, sigma])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"


def _both(x: Any, name: str) -> list[float]:
    if not isinstance(x, (float, Sequence)):
        raise TypeError(f"{name} should be float or a sequence of floats. Got {type(x)}")
    values = [x, x] if isinstance(x, float) else list(x)
    values = values * 2 if len(values) == 1 else values
    if len(values) != 2:
        raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(values)}")
    if not all(isinstance(v, float) for v in values):
        raise TypeError(f"{name} should be a sequence of floats. Got {values}")
    return values


class ElasticTransform(nn.Module):
    """`functional.elastic_transform` with drawn moves: of size `alpha`, smoothed over `sigma`
    pixels (each one number or (x, y))."""

    def __init__(
        self,
        alpha: Any = 50.0,
        sigma: Any = 5.0,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.alpha = _both(alpha, "alpha")
        self.sigma = _both(sigma, "sigma")
        self.interpolation = interpolation_mode(interpolation)
        self.fill = [float(fill)] if isinstance(fill, (int, float)) else [float(f) for f in fill]

    @staticmethod
    def get_params(alpha: list[float], sigma: list[float], size: list[int]) -> Tensor:
        """The moves (1, H, W, 2: x, y), in the units of `grid_sample`, for a `size` (H, W).

        Each is noise from -1 to 1, smoothed by a Gaussian cut off after four sigmas on each side;
        two sigmas of zero leave the noise as it is.
        """
        moves = []
        for strength, spread, side in zip(alpha, sigma, (size[1], size[0]), strict=True):
            noise = aten.rand([1, 1, *size]) * 2 - 1
            if spread > 0.0:
                taps = int(8 * spread + 1)
                taps += 1 - taps % 2
                # Smoothed along both directions, each with its own sigma.
                noise = F.gaussian_blur(noise, [taps, taps], sigma)
            moves.append(noise * strength / side)
        return aten.permute(aten.cat(moves, 1), (0, 2, 3, 1))

    def forward(self, tensor: Any) -> Any:
        _, height, width = F.get_dimensions(tensor)
        moves = self.get_params(self.alpha, self.sigma, [height, width])
        return F.elastic_transform(tensor, moves, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}"
            f", interpolation={self.interpolation}, fill={self.fill})"
        )
