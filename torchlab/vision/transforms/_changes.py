"""The changes that the automatic augmentations choose from, and the strengths they may have.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#auto-augmentation
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

_SHARES = {
    "Brightness": "adjust_brightness",
    "Color": "adjust_saturation",
    "Contrast": "adjust_contrast",
    "Sharpness": "adjust_sharpness",
}


def changed(F: Any, img: Any, name: str, size: float, mode: Any, fill: Any) -> Any:
    """`img` after the change `name` of that size, by the functions of the module `F`."""
    if name in ("ShearX", "ShearY"):
        # The shear moves the far edge by size times the side, and keeps the corner (0, 0).
        angle = math.degrees(math.atan(size))
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        return F.affine(img, 0.0, [0, 0], 1.0, shear, mode, fill, [0, 0])
    if name in ("TranslateX", "TranslateY"):
        move = [int(size), 0] if name == "TranslateX" else [0, int(size)]
        return F.affine(img, 0.0, move, 1.0, [0.0, 0.0], mode, fill)
    if name == "Rotate":
        return F.rotate(img, size, mode, fill=fill)
    if name in _SHARES:
        return getattr(F, _SHARES[name])(img, 1.0 + size)
    if name == "Posterize":
        return F.posterize(img, int(size))
    if name == "Solarize":
        return F.solarize(img, size)
    if name == "AutoContrast":
        return F.autocontrast(img)
    if name == "Equalize":
        return F.equalize(img)
    if name == "Invert":
        return F.invert(img)
    return img


def sizes_of(
    bins: int, shear: float, moves: tuple[float, float], turn: float, share: float, lost_bits: int
) -> dict[str, tuple[Tensor | None, bool]]:
    """For each change the sizes it may have, from weak to strong, and whether a sign is drawn."""

    def up(to: float) -> Tensor:
        return aten.linspace(0.0, to, bins)

    bits = 8 - aten.round(aten.arange(bins) / ((bins - 1) / lost_bits)).int()
    return {
        "Identity": (None, False),
        "ShearX": (up(shear), True),
        "ShearY": (up(shear), True),
        "TranslateX": (up(moves[0]), True),
        "TranslateY": (up(moves[1]), True),
        "Rotate": (up(turn), True),
        "Brightness": (up(share), True),
        "Color": (up(share), True),
        "Contrast": (up(share), True),
        "Sharpness": (up(share), True),
        "Posterize": (bits, False),
        "Solarize": (aten.linspace(255.0, 0.0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
        "Invert": (None, False),
    }


def mixed_sizes(height: int, width: int, all_ops: bool) -> dict[str, tuple[Tensor | None, bool]]:
    """The changes of AugMix; `all_ops` with those that change colours by a share."""
    known = sizes_of(10, 0.3, (width / 3.0, height / 3.0), 30.0, 0.9, 4)
    known["Posterize"] = (4 - aten.round(aten.arange(10) / (9 / 4)).int(), False)
    # Changes are drawn by their place in the list, so the order counts.
    first = [n for n in known if n not in ("Identity", "Invert", *_SHARES)]
    return {n: known[n] for n in first + (list(_SHARES) if all_ops else [])}


def mixing_shares(batch: Tensor, chains: int, alpha: float) -> tuple[Tensor, list[Tensor]]:
    """The share of each image of the batch in its mixture, and the share of each of the chains."""
    count, ones = batch.shape[0], (1,) * (batch.ndim - 1)
    split = aten._sample_dirichlet(aten.full((count, 2), float(alpha), device=batch.device))
    parts = aten._sample_dirichlet(aten.full((count, chains), float(alpha), device=batch.device))
    parts = parts * split[:, 1:]
    own = aten.reshape(split[:, 0], (count, *ones))
    return own, [aten.reshape(parts[:, k], (count, *ones)) for k in range(chains)]
