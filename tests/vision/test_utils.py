"""torchlab.vision.utils: grids by hand, drawings against Pillow's."""

from __future__ import annotations

import io

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision import utils as U

Image = pytest.importorskip("PIL.Image")
ImageDraw = pytest.importorskip("PIL.ImageDraw")
ImageFont = pytest.importorskip("PIL.ImageFont")

BYTES = np.random.default_rng(0).integers(0, 256, (3, 30, 40), dtype=np.uint8)


def image():
    return tl.from_numpy(BYTES.copy())


def picture():
    return Image.fromarray(BYTES.transpose(1, 2, 0))


def channels_first(pic):
    return np.asarray(pic).transpose(2, 0, 1)


def test_make_grid():
    x = np.arange(5 * 3 * 2 * 4, dtype="float32").reshape(5, 3, 2, 4)
    grid = U.make_grid(tl.from_numpy(x), nrow=3, padding=1, pad_value=-1.0).numpy()
    wanted = np.full((3, 7, 16), -1, "float32")
    for k in range(5):
        top, left = k // 3 * 3 + 1, k % 3 * 5 + 1
        wanted[:, top : top + 2, left : left + 4] = x[k]
    np.testing.assert_array_equal(grid, wanted)
    assert U.make_grid(tl.zeros(1, 4, 5)).shape == (3, 4, 5)
    assert U.make_grid([tl.zeros(3, 4, 5)] * 2).shape == (3, 8, 16)
    with pytest.raises(TypeError, match="list of tensors expected"):
        U.make_grid(3)


def test_make_grid_normalizes_a_copy():
    x = tl.tensor([0.0, 1.0, 2.0, 4.0]).reshape(2, 1, 1, 2)
    whole = U.make_grid(x, padding=0, normalize=True)
    np.testing.assert_allclose(whole[0, 0].numpy(), [0, 0.25, 0.5, 1])
    each = U.make_grid(x, padding=0, normalize=True, scale_each=True)
    np.testing.assert_allclose(each[0, 0].numpy(), [0, 1, 0, 1])
    given = U.make_grid(x, padding=0, normalize=True, value_range=(0, 2))
    np.testing.assert_allclose(given[0, 0].numpy(), [0, 0.5, 1, 1])
    assert x.flatten().tolist() == [0, 1, 2, 4]
    with pytest.raises(TypeError, match="value_range"):
        U.make_grid(x, normalize=True, value_range=[0, 1])


def test_save_image(tmp_path):
    U.save_image(image() / 255, tmp_path / "a.png")
    np.testing.assert_array_equal(channels_first(Image.open(tmp_path / "a.png")), BYTES)
    file = io.BytesIO()
    U.save_image(tl.ones(2, 3, 4, 4), file, format="bmp", padding=0)
    assert Image.open(file).size == (8, 4)


def test_boxes_are_pillows_rectangles():
    boxes = tl.tensor([[2, 3, 20, 15], [5, 5, 30, 25]])
    out = U.draw_bounding_boxes(image(), boxes, colors=["red", (1, 2, 3)], width=2)
    wanted = picture()
    pen = ImageDraw.Draw(wanted)
    pen.rectangle((2, 3, 20, 15), outline="red", width=2)
    pen.rectangle((5, 5, 30, 25), outline=(1, 2, 3), width=2)
    np.testing.assert_array_equal(out.numpy(), channels_first(wanted))
    floats = U.draw_bounding_boxes(image() / 255, boxes, colors="blue")
    assert floats.dtype == tl.float32
    assert floats[:, 3, 2].tolist() == [0.0, 0.0, 1.0]


def test_labels_stand_inside_the_first_corner():
    boxes = tl.tensor([[2, 3, 30, 25], [5, 5, 30, 25]])
    wanted = picture()
    pen = ImageDraw.Draw(wanted)
    font = ImageFont.load_default()
    pen.rectangle((2, 3, 30, 25), outline="red", width=2)
    left, top, right, bottom = pen.textbbox((5, 6), "ag", font=font)
    pen.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill="yellow")
    pen.text((5, 6), "ag", fill="black", font=font)
    pen.rectangle((5, 5, 30, 25), outline="red", width=2)
    out = U.draw_bounding_boxes(
        image(),
        boxes,
        labels=["ag", None],
        colors="red",
        width=2,
        fill_labels=True,
        label_background_colors="yellow",
    )
    np.testing.assert_array_equal(out.numpy(), channels_first(wanted))
    wanted = picture()
    pen = ImageDraw.Draw(wanted)
    pen.rectangle((2, 3, 30, 25), outline="red")
    pen.text((4, 5), "g", fill=(0, 0, 255), font=font)
    pen.rectangle((5, 5, 30, 25), outline="red")
    pen.text((7, 7), "h", fill=(0, 255, 0), font=font)
    out = U.draw_bounding_boxes(
        image(), boxes, labels=["g", "h"], colors="red", label_colors=["blue", "#00ff00"]
    )
    np.testing.assert_array_equal(out.numpy(), channels_first(wanted))
    gray = U.draw_bounding_boxes(image()[:1], boxes, colors="red", labels=["g", "h"])
    assert gray.shape == (3, 30, 40)
    with pytest.warns(UserWarning, match="font_size"):
        U.draw_bounding_boxes(image(), boxes, labels=["g", "h"], font_size=9)
    with pytest.warns(UserWarning, match="No box was drawn"):
        U.draw_bounding_boxes(image(), tl.zeros(0, 4), labels=[])
    with pytest.raises(OSError):
        U.draw_bounding_boxes(image(), boxes, font="no such font.ttf")


def test_a_turned_box_shows_where_its_top_is():
    """Recorded with torchvision 0.28: the first side is dashed, five pixels and five."""
    corners = tl.tensor([[2, 2, 32, 2, 32, 20, 2, 20]])
    out = U.draw_bounding_boxes(tl.zeros(3, 24, 36), corners, colors="red")
    rows = ["".join(".#"[int(v)] for v in out[0, y].tolist()) for y in (1, 2, 3, 20)]
    assert rows == [
        "....................................",
        "..######....######....######....#...",
        "..#.............................#...",
        "..###############################...",
    ]
    filled = U.draw_bounding_boxes(
        tl.zeros(3, 24, 36, dtype=tl.uint8), corners, colors="red", fill=True
    )
    assert filled[0, 10, 10].item() == 100 and filled[0, 10, 2].item() == 255


def test_masks_are_mixed():
    mask = tl.zeros(1, 30, 40, dtype=tl.bool)
    mask[0, 4:9, 5:7] = True
    out = U.draw_segmentation_masks(image(), mask, alpha=1.0, colors="lime").numpy()
    wanted = BYTES.copy()
    wanted[:, 4:9, 5:7] = np.array([0, 255, 0])[:, None, None]
    np.testing.assert_array_equal(out, wanted)
    twice = U.draw_segmentation_masks(image(), tl.cat((mask, mask)), alpha=1.0)
    assert not twice[:, 4:9, 5:7].any()
    half = U.draw_segmentation_masks(tl.ones(3, 30, 40), mask, alpha=0.5, colors=(0, 0, 0))
    assert half[0, 4, 5].item() == 0.5 and half[0, 0, 0].item() == 1.0


def test_keypoints_are_dots_and_lines():
    points = tl.tensor([[[5, 5], [20, 10], [30, 25]]])
    seen = tl.tensor([[True, True, False]])
    out = U.draw_keypoints(
        image(), points, [(0, 1), (1, 2)], colors="red", width=1, visibility=seen
    )
    wanted = picture()
    pen = ImageDraw.Draw(wanted)
    for x, y in ((5, 5), (20, 10)):
        pen.ellipse((x - 2, y - 2, x + 2, y + 2), fill="red", width=0)
    pen.line((5, 5, 20, 10), width=1)
    np.testing.assert_array_equal(out.numpy(), channels_first(wanted))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: U.draw_bounding_boxes(3, tl.zeros(1, 4)), TypeError, "Tensor"),
        (lambda: U.draw_bounding_boxes(image().int(), tl.zeros(1, 4)), ValueError, "uint8"),
        (lambda: U.draw_bounding_boxes(image()[:2], tl.zeros(1, 4)), ValueError, "RGB"),
        (
            lambda: U.draw_bounding_boxes(image(), tl.tensor([[5, 5, 1, 9]])),
            ValueError,
            "xmin <= xmax",
        ),
        (lambda: U.draw_bounding_boxes(image(), tl.zeros(2, 4), ["a"]), ValueError, "mismatch"),
        (
            lambda: U.draw_bounding_boxes(image(), tl.zeros(2, 4), colors=["red"]),
            ValueError,
            "Number of colors",
        ),
        (lambda: U.draw_segmentation_masks(image(), tl.zeros(30, 40)), ValueError, "bool"),
        (
            lambda: U.draw_segmentation_masks(image(), tl.zeros(3, 4, dtype=tl.bool)),
            ValueError,
            "same height",
        ),
        (lambda: U.draw_keypoints(image(), tl.zeros(2, 2)), ValueError, "num_instances"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_flow_is_coloured_by_its_direction():
    flow = tl.tensor([[[0.0, 1, -2], [0.5, 0, 3]], [[0.0, 1, 1], [-1, 2, -3]]])
    expected = [
        [[255, 255, 120], [231, 255, 220]],
        [[255, 208, 255], [187, 242, 0]],
        [[255, 169, 188], [255, 134, 255]],
    ]
    out = U.flow_to_image(flow)
    assert out.dtype is tl.uint8 and out.tolist() == expected
    assert U.flow_to_image(flow[None]).tolist() == [expected]
    assert not U.flow_to_image(flow.clone().requires_grad_()).requires_grad
    with pytest.raises(ValueError, match="dtype torch.float, got torch.uint8"):
        U.flow_to_image(out)
    with pytest.raises(ValueError, match=r"\(2, H, W\) or \(N, 2, H, W\), got .*3, 2, 3"):
        U.flow_to_image(out.float())
