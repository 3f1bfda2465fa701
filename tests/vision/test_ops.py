"""Boxes, losses and regions against values worked out by hand."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
from torchlab.vision import ops

A = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
B = torch.tensor([[1.0, 1.0, 3.0, 3.0], [4.0, 0.0, 6.0, 2.0]])


def test_iou() -> None:
    assert ops.box_iou(A, B).tolist() == [[pytest.approx(1 / 7), 0.0]]
    # hulls 3×3 and 6×2: 1/7 - 2/9, 0 - 4/12
    assert ops.generalized_box_iou(A, B)[0].tolist() == pytest.approx([1 / 7 - 2 / 9, -1 / 3])
    # centres √2 and 4 apart, diagonals² 18 and 40
    expected = [1 / 7 - 2 / 18, -16 / 40]
    assert ops.distance_box_iou(A, B)[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert ops.complete_box_iou(A, B)[0].tolist() == pytest.approx(expected, abs=1e-6)  # squares


def test_losses_of_pairs() -> None:
    b = B[:1]
    assert ops.generalized_box_iou_loss(A, b).item() == pytest.approx(1 - (1 / 7 - 2 / 9), abs=1e-6)
    assert ops.distance_box_iou_loss(A, b).item() == pytest.approx(1 - (1 / 7 - 1 / 9), abs=1e-6)
    with pytest.raises(ValueError, match="reduction"):
        ops.generalized_box_iou_loss(A, b, reduction="max")


def test_focal_loss_of_one_half() -> None:
    loss = ops.sigmoid_focal_loss(torch.zeros(2), torch.tensor([1.0, 0.0]), reduction="none")
    assert loss.tolist() == pytest.approx(
        [0.25 * 0.25 * math.log(2), 0.75 * 0.25 * math.log(2)], rel=1e-6
    )


def test_nms_keeps_the_best_of_what_overlaps() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
    scores = torch.tensor([0.8, 0.9, 0.7])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert ops.nms(boxes, scores, 0.9).tolist() == [1, 0, 2]
    kept = ops.batched_nms(boxes, scores, torch.tensor([0, 1, 0]), 0.5)
    assert kept.tolist() == [1, 0, 2]
    with pytest.raises(RuntimeError, match="same number"):
        ops.nms(boxes, scores[:2], 0.5)


def test_formats() -> None:
    box = torch.tensor([[1.0, 2.0, 5.0, 8.0]])
    assert ops.box_convert(box, "xyxy", "xywh").tolist() == [[1, 2, 4, 6]]
    assert ops.box_convert(box, "xyxy", "cxcywh").tolist() == [[3, 5, 4, 6]]
    assert ops.box_convert(torch.tensor([[3.0, 5, 4, 6]]), "cxcywh", "xyxy").equal(box)
    assert ops.box_area(box).tolist() == [24]
    assert ops.clip_boxes_to_image(box, (4, 3)).tolist() == [[1, 2, 3, 4]]
    assert ops.remove_small_boxes(box, 5).tolist() == []
    with pytest.raises(ValueError, match="Unsupported"):
        ops.box_convert(box, "xyxy", "polar")


def test_masks_to_boxes() -> None:
    masks = torch.zeros(2, 5, 6, dtype=torch.bool)
    masks[0, 1:3, 2:5] = True
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 4, 2], [0, 0, 0, 0]]


def test_roi_align_of_a_plane_gives_the_centres() -> None:
    """Bilinear samples of a + bx + cy are exact; their mean is the value at the bin's centre."""
    y, x = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    plane = (1 + 2 * x + 3 * y).view(1, 1, 12, 12).requires_grad_()
    out = ops.roi_align(plane, [torch.tensor([[2.0, 3.0, 6.0, 7.0]])], (2, 2), 1.0, 2, True)
    centres = [[3 - 0.5, 4 - 0.5], [5 - 0.5, 4 - 0.5], [3 - 0.5, 6 - 0.5], [5 - 0.5, 6 - 0.5]]
    assert out.flatten().tolist() == pytest.approx([1 + 2 * a + 3 * b for a, b in centres])
    out.sum().backward()
    assert plane.grad.sum().item() == pytest.approx(4)


def test_roi_pool_takes_maxima_of_pixels() -> None:
    x = torch.arange(36.0).view(1, 1, 6, 6)
    out = ops.roi_pool(x, torch.tensor([[0.0, 1.0, 1.0, 4.0, 4.0]]), 2)
    assert out.tolist() == [[[[14, 16], [26, 28]]]]


def test_stochastic_depth() -> None:
    x = torch.ones(64, 2)
    torch.manual_seed(0)
    rows = ops.stochastic_depth(x, 0.5, "row")
    assert set(rows.flatten().tolist()) == {0.0, 2.0}
    assert rows[:, 0].equal(rows[:, 1])
    assert ops.stochastic_depth(x, 0.5, "batch", training=False) is x
    with pytest.raises(ValueError, match="probability"):
        ops.stochastic_depth(x, 1.5, "row")


def test_turned_formats() -> None:
    b = torch.tensor([[2.0, 3, 4, 2, 30], [10, 5, 6, 3, -100]])
    centres = ops.box_convert(b, "xywhr", "cxcywhr")
    expected = [[4.23205, 2.86603], [8.00184, 7.69395]]
    torch.testing.assert_close(centres[:, :2], torch.tensor(expected), atol=1e-4, rtol=0)
    corners = ops.box_convert(b, "cxcywhr", "xyxyxyxy")
    expected = [
        [-0.23205, 3.13397, 3.23205, 1.13397, 4.23205, 2.86603, 0.76795, 4.86603],
        [11.99816, 2.30605, 10.95627, 8.21490, 8.00184, 7.69395, 9.04373, 1.78510],
    ]
    torch.testing.assert_close(corners, torch.tensor(expected), atol=1e-4, rtol=0)
    torch.testing.assert_close(ops.box_convert(corners, "xyxyxyxy", "cxcywhr"), b)
    # Whole numbers are rounded after each step.
    whole = b.int()
    expected = [[2, 3, 5, 1, 6, 3, 3, 5], [10, 5, 9, 11, 6, 10, 7, 4]]
    assert ops.box_convert(whole, "xywhr", "xyxyxyxy").tolist() == expected
    expected = [[0, 3, 4, 2, 30], [12, 2, 6, 3, -100]]
    assert ops.box_convert(whole, "cxcywhr", "xywhr").tolist() == expected
    with pytest.raises(NotImplementedError, match="in_fmt xywhr and out_fmt xyxy"):
        ops.box_convert(b, "xywhr", "xyxy")
    with pytest.raises(ValueError, match="in_fmt x and out_fmt xyxy"):
        ops.box_convert(b, "x", "xyxy")


def test_one_level_of_a_pyramid() -> None:
    pyramid = ops.FeaturePyramidNetwork([2, 3], 4)
    x, y = torch.ones(1, 3, 2, 2), torch.ones(1, 4, 2, 2)
    inner, layer = pyramid.inner_blocks[1], pyramid.layer_blocks[0]
    assert torch.equal(pyramid.get_result_from_inner_blocks(x, -1), inner(x))
    assert torch.equal(pyramid.get_result_from_layer_blocks(y, 0), layer(y))
