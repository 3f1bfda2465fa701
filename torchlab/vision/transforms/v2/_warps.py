"""Flips and random maps of the plane.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#others
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab.vision.transforms import _warps as v1
from torchlab.vision.transforms._geometry import projection
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._arguments import fill_for, fills_of, pair_of_numbers
from torchlab.vision.transforms.v2._resizes import Interpolation
from torchlab.vision.transforms.v2._samples import query_size
from torchlab.vision.transforms.v2._transform import RandomApplyTransform, Transform


class RandomHorizontalFlip(RandomApplyTransform):
    """`functional.horizontal_flip` with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.horizontal_flip, inpt)


class RandomVerticalFlip(RandomApplyTransform):
    """`functional.vertical_flip` with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.vertical_flip, inpt)


class RandomRotation(Transform):
    """`functional.rotate` by an angle drawn from `degrees`: (from, to), or x for (-x, x)."""

    get_params = staticmethod(v1.RandomRotation.get_params)

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = "nearest",
        expand: bool = False,
        center: list[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.degrees = v1.angle_range(degrees, "degrees")
        self.interpolation = interpolation
        self.expand = expand
        self.fill = fill
        self._fills = fills_of(fill)
        if center is not None:
            v1.check_sequence(center, "center", (2,))
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": self.get_params(self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rotate,
            inpt,
            **params,
            interpolation=self.interpolation,
            expand=self.expand,
            center=self.center,
            fill=fill_for(self._fills, inpt),
        )


class RandomAffine(Transform):
    """`functional.affine` with values drawn from ranges.

    degrees: (from, to), or x for (-x, x). translate: the largest move, as parts of width and
    height. scale: (from, to). shear: (from, to) for x, or also (from, to) for y, in degrees.
    """

    get_params = staticmethod(v1.RandomAffine.get_params)

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Interpolation = "nearest",
        fill: Any = 0,
        center: list[float] | None = None,
    ) -> None:
        super().__init__()
        self.degrees = v1.angle_range(degrees, "degrees")
        if translate is not None:
            v1.check_sequence(translate, "translate", (2,))
            if not all(0.0 <= t <= 1.0 for t in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            v1.check_sequence(scale, "scale", (2,))
            if any(s <= 0 for s in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear = None if shear is None else v1.angle_range(shear, "shear", (2, 4))
        self.interpolation = interpolation
        self.fill = fill
        self._fills = fills_of(fill)
        if center is not None:
            v1.check_sequence(center, "center", (2,))
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        drawn = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, (width, height)
        )
        return dict(zip(("angle", "translate", "scale", "shear"), drawn, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.affine,
            inpt,
            **params,
            interpolation=self.interpolation,
            fill=fill_for(self._fills, inpt),
            center=self.center,
        )


class RandomPerspective(RandomApplyTransform):
    """`functional.perspective` with probability `p`: each corner goes inwards by up to
    `distortion_scale` (0 to 1) times half of the side."""

    get_params = staticmethod(v1.RandomPerspective.get_params)

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = "bilinear",
        fill: Any = 0,
    ) -> None:
        super().__init__(p=p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale = distortion_scale
        self.interpolation = interpolation
        self.fill = fill
        self._fills = fills_of(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        start, end = self.get_params(width, height, self.distortion_scale)
        # Solved once for the whole sample.
        return {"coefficients": projection(start, end, None)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.perspective,
            inpt,
            None,
            None,
            fill=fill_for(self._fills, inpt),
            interpolation=self.interpolation,
            **params,
        )


class ElasticTransform(Transform):
    """`functional.elastic` with drawn moves: of size `alpha`, smoothed over `sigma` pixels (each
    one number or (x, y))."""

    get_params = staticmethod(v1.ElasticTransform.get_params)

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Interpolation = "bilinear",
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.alpha = pair_of_numbers(alpha, "alpha")
        self.sigma = pair_of_numbers(sigma, "sigma")
        self.interpolation = interpolation
        self.fill = fill
        self._fills = fills_of(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = list(query_size(flat_inputs))
        return {"displacement": self.get_params(self.alpha, self.sigma, size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.elastic,
            inpt,
            **params,
            fill=fill_for(self._fills, inpt),
            interpolation=self.interpolation,
        )
