"""torchlab.vision.transforms.v2.functional on boxes and points: small cases done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, KeyPoints

UPRIGHT = ("XYXY", "XYWH", "CXCYWH")
TURNED = ("XYWHR", "CXCYWHR", "XYXYXYXY")
DIAMOND = [2.0, 4.0, 4.0, 2.0, 6.0, 4.0, 4.0, 6.0]


def boxes(numbers, format="XYXY", canvas_size=(10, 12), **kwargs):
    return BoundingBoxes(tl.tensor(numbers), format=format, canvas_size=canvas_size, **kwargs)


def in_format(given, format):
    return F.convert_bounding_box_format(given, new_format=format)


def close(given, wanted, tolerance=1e-5):
    np.testing.assert_allclose(given.detach().numpy(), wanted, atol=tolerance)


def test_upright_formats():
    given = boxes([[1.0, 2.0, 4.0, 8.0]])
    close(in_format(given, "XYWH"), [[1, 2, 3, 6]])
    close(in_format(given, "CXCYWH"), [[2.5, 5, 3, 6]])
    for one in UPRIGHT:
        for other in UPRIGHT:
            there = in_format(in_format(given, one), other)
            assert there.format is BoundingBoxFormat[other]
            close(in_format(there, "XYXY"), given.numpy())


def test_turned_formats():
    # A box of width 2 and height 1, turned by 90 degrees against the clock about its corner.
    corner = boxes([[3.0, 5.0, 2.0, 1.0, 90.0]], "XYWHR")
    close(in_format(corner, "XYXYXYXY"), [[3, 5, 3, 3, 4, 3, 4, 5]])
    close(in_format(corner, "CXCYWHR"), [[3.5, 4, 2, 1, 90]])
    slant = boxes([[4.0, 4.0, 2.0, 2.0, 45.0]], "CXCYWHR")
    half = math.sqrt(2)
    close(
        in_format(slant, "XYXYXYXY"),
        [[4 - half, 4, 4, 4 - half, 4 + half, 4, 4, 4 + half]],
    )
    for one in TURNED:
        for other in TURNED:
            close(in_format(in_format(in_format(slant, one), other), "CXCYWHR"), slant.numpy())


def test_whole_numbers_stay_whole():
    given = boxes([[1, 2, 4, 7], [-3, 0, 0, 1]])
    assert in_format(given, "CXCYWH").tolist() == [[2, 4, 3, 5], [-2, 0, 3, 1]]
    middle = boxes([[1, -1, 3, 3]], "CXCYWH")
    assert in_format(middle, "XYXY").tolist() == [[0, -2, 2, 0]]


def test_conversions_that_are_refused():
    with pytest.raises(ValueError, match="rotated and unrotated"):
        in_format(boxes([[1.0, 2.0, 3.0, 4.0]]), "XYWHR")
    with pytest.raises(TypeError, match="new_format"):
        F.convert_bounding_box_format(boxes([[1.0, 2.0, 3.0, 4.0]]))
    with pytest.raises(ValueError, match="old_format"):
        F.convert_bounding_box_format(tl.zeros(1, 4), new_format="XYWH")
    with pytest.raises(ValueError, match="old_format"):
        F.convert_bounding_box_format(boxes([[1.0, 2.0, 3.0, 4.0]]), "XYXY", "XYWH")
    with pytest.raises(TypeError, match="Image"):
        F.convert_bounding_box_format(Image(tl.zeros(1, 2, 2)), "XYXY", "XYWH")


def test_conversion_in_place():
    plain = tl.tensor([[1.0, 2.0, 4.0, 8.0]])
    out = F.convert_bounding_box_format(plain, "XYXY", "XYWH", inplace=True)
    assert out is plain and plain.tolist() == [[1, 2, 3, 6]]


@pytest.mark.parametrize("format", UPRIGHT)
def test_upright_boxes_are_mirrored(format):
    given = in_format(boxes([[1.0, 2.0, 4.0, 8.0]]), format)
    close(in_format(F.horizontal_flip(given), "XYXY"), [[8, 2, 11, 8]])
    close(in_format(F.vertical_flip(given), "XYXY"), [[1, 2, 4, 8]])


@pytest.mark.parametrize("format", TURNED)
def test_turned_boxes_are_mirrored(format):
    given = in_format(boxes([[3.0, 4.0, 4.0, 2.0, 30.0]], "CXCYWHR"), format)
    close(in_format(F.horizontal_flip(given), "CXCYWHR"), [[9, 4, 4, 2, -30]])
    close(in_format(F.vertical_flip(given), "CXCYWHR"), [[3, 6, 4, 2, 150]], 1e-4)


def test_points_are_mirrored_as_pixels():
    points = KeyPoints([[0, 0], [3, 1]], canvas_size=(4, 5))
    assert F.horizontal_flip(points).tolist() == [[4, 0], [1, 1]]
    assert F.vertical_flip(points).tolist() == [[0, 3], [3, 2]]


def test_clamping_upright_boxes():
    given = boxes([[-3.0, -2.0, 14.0, 13.0], [1.0, 2.0, 3.0, 4.0]])
    cut = [[0, 0, 12, 10], [1, 2, 3, 4]]
    for mode in ("soft", "hard", "auto"):
        close(F.clamp_bounding_boxes(given, clamping_mode=mode), cut)
    close(F.clamp_bounding_boxes(given, clamping_mode=None), given.numpy())
    close(
        F.clamp_bounding_boxes(boxes([[-1.0, 0.0, 1.0, 1.0]], clamping_mode=None)), [[-1, 0, 1, 1]]
    )
    with pytest.raises(ValueError, match="canvas_size"):
        F.clamp_bounding_boxes(tl.zeros(1, 4), "XYXY")
    with pytest.raises(ValueError, match="clamping_mode"):
        F.clamp_bounding_boxes(given, clamping_mode="firm")


def test_soft_clamping_of_turned_boxes():
    # A corner beyond the border is needed by no part of the image: the box stays.
    corner = [[-1.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 6.0]]
    close(F.clamp_bounding_boxes(boxes(corner, "XYXYXYXY")), corner)
    # Of a diamond cut through its middle, the smallest diamond around the half is the whole.
    half = [[-2.0, 4.0, 0.0, 2.0, 2.0, 4.0, 0.0, 6.0]]
    close(F.clamp_bounding_boxes(boxes(half, "XYXYXYXY")), half)
    # With less than half inside, both sides become shorter.
    less = [[-3.0, 4.0, -1.0, 2.0, 1.0, 4.0, -1.0, 6.0]]
    close(F.clamp_bounding_boxes(boxes(less, "XYXYXYXY")), [[-1, 4, 0, 3, 1, 4, 0, 5]], 1e-4)
    outside = [[-9.0, 4.0, -7.0, 2.0, -5.0, 4.0, -7.0, 6.0]]
    close(F.clamp_bounding_boxes(boxes(outside, "XYXYXYXY")), [[0, 10] * 4])


def test_hard_clamping_of_turned_boxes():
    corner = [[-1.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 6.0]]
    cut = F.clamp_bounding_boxes(boxes(corner, "XYXYXYXY"), clamping_mode="hard")
    close(cut, [[0, 4, 1.5, 2.5, 3, 4, 1.5, 5.5]])
    # Boxes along the borders are cut as upright ones are.
    level = boxes([[-1.0, 3.0, 4.0, 2.0, 0.0]], "XYWHR", clamping_mode="hard")
    close(F.clamp_bounding_boxes(level), [[0, 3, 3, 2, 0]])
    rng = np.random.default_rng(0)
    many = np.stack(
        [*rng.uniform(0, 10, (2, 200)), *rng.uniform(2, 8, (2, 200)), rng.uniform(5, 85, 200)], 1
    )
    out = F.clamp_bounding_boxes(boxes(many.tolist(), "CXCYWHR"), clamping_mode="hard")
    x, y = in_format(out, "XYXYXYXY").reshape(-1, 4, 2).unbind(-1)
    slack = 1e-3
    assert x.min() > -slack and x.max() < 12 + slack
    assert y.min() > -slack and y.max() < 10 + slack
    close(out[:, 4] % 180, many[:, 4], 0.05)


def test_points_are_clamped_to_pixels():
    points = KeyPoints([[-1.0, 2.0], [100.0, 100.0]], canvas_size=(10, 12))
    assert F.clamp_keypoints(points).tolist() == [[0, 2], [11, 9]]
    with pytest.raises(ValueError, match="canvas_size"):
        F.clamp_keypoints(tl.zeros(1, 2))


def test_bad_boxes_are_removed():
    given = boxes([[1.0, 2.0, 7.0, 5.0], [5.0, 5.0, 5.0, 5.0], [-1.0, 0.0, 4.0, 4.0]])
    good, mask = F.sanitize_bounding_boxes(given)
    assert mask.tolist() == [True, False, False] and type(good) is BoundingBoxes
    assert good.tolist() == [[1, 2, 7, 5]]
    assert F.sanitize_bounding_boxes(given, min_area=19)[1].tolist() == [False] * 3
    assert F.sanitize_bounding_boxes(given, min_size=0, min_area=0)[1].tolist() == [
        True,
        True,
        False,
    ]
    turned = boxes([DIAMOND, [-1.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 6.0]], "XYXYXYXY")
    assert F.sanitize_bounding_boxes(turned)[1].tolist() == [True, False]
    with pytest.raises(ValueError, match="format and canvas_size"):
        F.sanitize_bounding_boxes(tl.zeros(1, 4))


def test_bad_points_are_removed_by_groups():
    points = KeyPoints([[[1.0, 1.0], [2.0, 9.9]], [[1.0, 1.0], [12.0, 2.0]]], canvas_size=(10, 12))
    good, mask = F.sanitize_keypoints(points)
    assert mask.tolist() == [True, False] and good.shape == (1, 2, 2)


@pytest.mark.parametrize("format", UPRIGHT)
def test_upright_boxes_under_transforms(format):
    given = in_format(boxes([[1.0, 2.0, 4.0, 8.0]]), format)

    def corners(out, canvas_size):
        assert out.canvas_size == canvas_size and out.format is given.format
        return in_format(out, "XYXY")

    close(corners(F.resize(given, [20, 6]), (20, 6)), [[0.5, 4, 2, 16]])
    close(corners(F.pad(given, [1, 2, 3, 4]), (16, 16)), [[2, 4, 5, 10]])
    close(corners(F.crop(given, 3, 2, 4, 6), (4, 6)), [[0, 0, 2, 4]])
    close(corners(F.center_crop(given, [4, 4]), (4, 4)), [[0, 0, 0, 4]])
    close(corners(F.resized_crop(given, 0, 0, 10, 6, [5, 6]), (5, 6)), [[1, 1, 4, 4]])
    close(corners(F.rotate(given, 180), (10, 12)), [[8, 2, 11, 8]], 1e-4)
    close(corners(F.rotate(given, 90, expand=True), (12, 10)), [[2, 8, 8, 11]], 1e-4)
    close(corners(F.affine(given, 0, [2, -1], 1.0, [0.0, 0.0]), (10, 12)), [[3, 1, 6, 7]], 1e-4)
    scaled = F.affine(given, 0, [0, 0], 0.5, [0.0, 0.0], center=[0, 0])
    close(corners(scaled, (10, 12)), [[0.5, 1, 2, 4]], 1e-4)
    moved = F.perspective(given, None, None, coefficients=[1, 0, -2, 0, 1, 1, 0, 0])
    close(corners(moved, (10, 12)), [[3, 1, 6, 7]], 1e-4)
    close(corners(F.elastic(given, tl.zeros(1, 10, 12, 2)), (10, 12)), [[1, 2, 4, 8]], 1e-4)


@pytest.mark.parametrize("format", TURNED)
def test_turned_boxes_under_transforms(format):
    given = in_format(boxes([[5.0, 4.0, 3.0, 2.0, 20.0]], "CXCYWHR"), format)

    def numbers(out, canvas_size):
        assert out.canvas_size == canvas_size and out.format is given.format
        return in_format(out, "CXCYWHR")

    close(numbers(F.pad(given, [1, 2]), (14, 14)), [[6, 6, 3, 2, 20]], 1e-4)
    close(numbers(F.resize(given, [20, 24]), (20, 24)), [[10, 8, 6, 4, 20]], 1e-4)
    # About the middle (6, 5) of the canvas, clockwise.
    turned = F.affine(given, 30, [0, 0], 1.0, [0.0, 0.0])
    c, s = math.cos(math.radians(30)), math.sin(math.radians(30))
    close(numbers(turned, (10, 12)), [[6 - c + s, 5 - s - c, 3, 2, -10]], 1e-4)
    close(numbers(F.rotate(given, 90, expand=True), (12, 10)), [[4, 7, 3, 2, 110]], 1e-4)
    still = F.elastic(boxes([[5.0, 4.0, 3.0, 2.0, 20.0]], "CXCYWHR"), tl.zeros(1, 10, 12, 2))
    close(still, [[5, 4, 3, 2, 20]], 1e-4)


def test_a_stretched_box_keeps_its_diagonal():
    # Corners (0, 2), (4, 0), (6, 4), (2, 6), stretched twice as wide: the longer diagonal stays.
    given = boxes([[0.0, 2.0, 4.0, 0.0, 6.0, 4.0, 2.0, 6.0]], "XYXYXYXY", clamping_mode=None)
    out = F.resize(given, [10, 24]).reshape(4, 2)
    close(out[0], [0, 2])
    close(out[2], [12, 4])
    side, other = out[1] - out[0], out[2] - out[1]
    close((side * other).sum(), 0, 1e-4)
    close(side[1] / side[0], -2 / 8, 1e-4)


def test_points_under_transforms():
    points = KeyPoints([[[3.0, 2.0]], [[6.0, 5.0]]], canvas_size=(10, 12))
    close(F.resize(points, [20, 6]), [[[1.5, 4]], [[3, 10]]])
    close(F.pad(points, [1, 2]), [[[4, 4]], [[7, 7]]])
    close(F.crop(points, 3, 1, 4, 4), [[[2, -1]], [[5, 2]]])
    turned = F.rotate(points, 90)
    close(turned, [[[3, 8]], [[6, 5]]], 1e-4)
    assert F.rotate(points, 90, expand=True).canvas_size == (12, 10)
    close(F.rotate(points, 90, expand=True), [[[2, 9]], [[5, 6]]], 1e-4)
    close(F.affine(points, 0, [1, 1], 2.0, [0.0, 0.0]), [[[1, 0]], [[7, 6]]], 1e-4)
    with pytest.raises(ValueError, match="not supported"):
        F.pad(points, 1, padding_mode="edge")


def test_points_follow_the_pixels():
    image = tl.zeros(1, 16, 20)
    image[0, 4, 7] = 1.0
    point = KeyPoints([[7.5, 4.5]], canvas_size=(16, 20))
    start = [[0, 0], [19, 0], [19, 15], [0, 15]]
    end = [[2, 1], [18, 0], [19, 14], [1, 15]]
    for call in (
        lambda x: F.affine(x, 25, [2, 1], 1.3, [5.0, -3.0]),
        lambda x: F.rotate(x, 40.0, expand=True),
        lambda x: F.perspective(x, start, end),
    ):
        out = call(image) if call(image).max() > 0 else call(F.gaussian_blur(image, 3))
        y, x = divmod(int(out.flatten().argmax()), out.shape[-1])
        place = call(point)[0]
        assert abs(float(place[0]) - x - 0.5) < 1.2 and abs(float(place[1]) - y - 0.5) < 1.2


def test_no_boxes():
    for format, size in (("XYXY", 4), ("XYWHR", 5), ("XYXYXYXY", 8)):
        for mode in ("soft", "hard", None):
            none = BoundingBoxes(
                tl.zeros(0, size), format=format, canvas_size=(5, 6), clamping_mode=mode
            )
            for out in (
                F.rotate(none, 30),
                F.affine(none, 3, [1, 2], 1.0, [0, 0]),
                F.clamp_bounding_boxes(none),
                F.resize(none, [3, 3]),
                F.horizontal_flip(none),
                F.elastic(none, tl.zeros(1, 5, 6, 2)),
                F.sanitize_bounding_boxes(none)[0],
            ):
                assert out.shape == (0, size)
