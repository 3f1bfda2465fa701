"""torchlab.vision.tv_tensors: types, metadata and what operations do with them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision import tv_tensors
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    TVTensor,
    Video,
    set_return_type,
    wrap,
)


def boxes(**kwargs):
    given = {"format": "XYXY", "canvas_size": (10, 12), **kwargs}
    return BoundingBoxes([[1.0, 2.0, 3.0, 4.0]], **given)


def test_shapes_that_each_kind_takes():
    assert Image(tl.zeros(2, 3)).shape == (1, 2, 3)
    assert Image(np.zeros((3, 2, 2), np.uint8)).dtype == tl.uint8
    with pytest.raises(ValueError, match="2D or higher"):
        Image([1, 2])
    assert Video(tl.zeros(2, 3, 4, 5), dtype=tl.float64).dtype == tl.float64
    with pytest.raises(ValueError, match="Video"):
        Video(tl.zeros(3, 4, 5))
    assert Mask(tl.zeros(4)).shape == (4,)
    assert KeyPoints([1.0, 2.0], canvas_size=(4, 4)).shape == (1, 2)
    with pytest.raises(ValueError, match=r"\(\.\.\., 2\)"):
        KeyPoints(tl.zeros(2, 3), canvas_size=(4, 4))
    assert boxes().format is BoundingBoxFormat.XYXY
    assert BoundingBoxes([1, 2, 3, 4], format="cxcywh", canvas_size=(4, 4)).shape == (1, 4)
    with pytest.raises(ValueError, match="1D or 2D"):
        BoundingBoxes(tl.zeros(1, 1, 4), format="XYXY", canvas_size=(4, 4))
    with pytest.raises(KeyError):
        boxes(format="XY")
    with pytest.raises(ValueError, match="clamping_mode"):
        boxes(clamping_mode="firm")
    with pytest.raises(ValueError, match="floating point"):
        BoundingBoxes([[1, 2, 3, 4, 5]], format="XYWHR", canvas_size=(4, 4))


def test_pictures_are_images_and_masks():
    pil = pytest.importorskip("PIL.Image")
    picture = pil.fromarray(np.arange(24, dtype=np.uint8).reshape(2, 4, 3))
    assert Image(picture).tolist() == np.arange(24).reshape(2, 4, 3).transpose(2, 0, 1).tolist()
    assert Mask(picture.convert("L")).shape == (1, 2, 4)


def test_operations_return_plain_tensors():
    image = Image(tl.zeros(3, 2, 2))
    for out in (image + 1, image[0], image.view(-1), tl.stack([image, image]), image.float()):
        assert type(out) is tl.Tensor
    assert type(image.add_(1)) is tl.Tensor
    assert type(image) is Image and image.sum() == 12
    assert [type(part) for part in boxes().unbind()] == [tl.Tensor]


@pytest.mark.parametrize(
    "make",
    [lambda: Image(tl.zeros(1, 2, 2)), boxes, lambda: KeyPoints([[1.0, 2.0]], canvas_size=(4, 5))],
)
def test_what_keeps_the_type(make):
    given = make()
    copies = [
        given.clone(),
        given.to(tl.float64),
        given.detach(),
        given.requires_grad_(False),
        copy.deepcopy(given),
        copy.copy(given),
        pickle.loads(pickle.dumps(given)),
    ]
    for out in copies:
        assert type(out) is type(given)
        assert repr(out).replace(", dtype=torch.float64", "") == repr(given)
    assert copy.deepcopy(given).data_ptr() != given.data_ptr()


def test_a_deep_copy_is_a_leaf_that_needs_a_gradient_too():
    image = Image(tl.zeros(1, 2, 2), requires_grad=True)
    twin = copy.deepcopy(image)
    assert twin.requires_grad and twin.is_leaf


def test_the_return_type_can_be_kept():
    image, given = Image(tl.zeros(1, 2, 2)), boxes(clamping_mode="hard")
    with set_return_type("TVTensor"):
        assert type(image + 1) is Image
        moved = given + 1
        assert type(moved) is BoundingBoxes
        assert (moved.format, moved.canvas_size, moved.clamping_mode) == (
            given.format,
            given.canvas_size,
            "hard",
        )
        largest = tl.max(image, 0)
        assert type(largest.values) is Image and type(largest.indices) is Image
        assert type(given.data) is BoundingBoxes and given.data.canvas_size == (10, 12)
        assert given.tolist() == [[1.0, 2.0, 3.0, 4.0]]
        with set_return_type("tensor"):
            assert type(image + 1) is tl.Tensor
        assert type(image + 1) is Image
    assert type(image + 1) is tl.Tensor
    try:
        set_return_type("tvtensor")
        assert type(image + 1) is Image
    finally:
        set_return_type("Tensor")
    with pytest.raises(ValueError, match="return_type"):
        set_return_type("list")


def test_two_kinds_do_not_mix():
    with pytest.raises(TypeError):
        Image(tl.zeros(1, 2, 2)) + Mask(tl.zeros(1, 2, 2))


def test_wrap():
    given = boxes()
    other = wrap(tl.zeros(2, 4), like=given, format="XYWH", canvas_size=(3, 3))
    assert (type(other), other.format, other.canvas_size) == (
        BoundingBoxes,
        BoundingBoxFormat.XYWH,
        (3, 3),
    )
    points = wrap(tl.zeros(2, 2), like=KeyPoints([[0.0, 0.0]], canvas_size=(7, 8)))
    assert points.canvas_size == (7, 8)
    plain = tl.zeros(2)
    assert wrap(plain, like=tl.zeros(1)) is plain


def test_how_they_print():
    assert str(boxes()) == repr(boxes()) == f"{boxes()}"
    assert repr(boxes()) == (
        "BoundingBoxes([[1., 2., 3., 4.]], format=BoundingBoxFormat.XYXY, canvas_size=(10, 12),"
        " clamping_mode=soft)"
    )
    assert repr(KeyPoints([[1, 2]], canvas_size=(3, 4))) == (
        "KeyPoints([[1, 2]], canvas_size=(3, 4))"
    )
    assert repr(Mask([1, 2])) == "Mask([1, 2])"


def test_a_kind_of_ones_own():
    class Depth(TVTensor):
        pass

    depth = tl.zeros(2).as_subclass(Depth)
    assert type(depth.clone()) is Depth and type(depth + 1) is tl.Tensor
    assert type(wrap(tl.zeros(1), like=depth)) is Depth


def test_turned_formats():
    turned = [f.name for f in BoundingBoxFormat if tv_tensors.is_rotated_bounding_format(f)]
    assert turned == ["XYWHR", "CXCYWHR", "XYXYXYXY"]
    assert tv_tensors.is_rotated_bounding_format("XYWHR")
    with pytest.raises(ValueError, match="format"):
        tv_tensors.is_rotated_bounding_format(3)
