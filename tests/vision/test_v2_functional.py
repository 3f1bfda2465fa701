"""torchlab.vision.transforms.v2.functional on images, videos and masks."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision.transforms import functional as F1
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video

PIL = pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (3, 6, 8), dtype=np.uint8)
PICTURE = PIL.fromarray(BYTES.transpose(1, 2, 0).copy())


def image():
    return Image(tl.from_numpy(BYTES.copy()))


def floats(*shape):
    return tl.from_numpy(RNG.random(shape).astype("float32"))


def test_each_name_is_there_and_kernels_name_their_type():
    for name in F.__all__:
        assert callable(getattr(F, name)), name
    for kind, first in (("_video", "video"), ("_mask", "mask")):
        for name in (n for n in F.__all__ if n.endswith(kind)):
            assert next(iter(inspect.signature(getattr(F, name)).parameters)) == first, name


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.horizontal_flip(x),
        lambda x: F.resize(x, [3, 4]),
        lambda x: F.pad(x, [1, 2]),
        lambda x: F.crop(x, 1, 1, 3, 3),
        lambda x: F.center_crop(x, [2, 3]),
        lambda x: F.resized_crop(x, 1, 1, 3, 3, [4, 4]),
        lambda x: F.rotate(x, 30.0),
        lambda x: F.affine(x, 10.0, [1, 0], 1.1, [3.0, 0.0]),
        lambda x: F.perspective(x, None, None, coefficients=[1.0, 0, 0, 0, 1.0, 0, 0, 0]),
        lambda x: F.elastic(x, tl.zeros(1, 6, 8, 2)),
        lambda x: F.to_dtype(x, tl.float32),
    ],
)
def test_the_type_that_goes_in_comes_out(call):
    given = [
        image(),
        Video(image().repeat(2, 1, 1, 1)),
        Mask(image()[0]),
        KeyPoints([[1.0, 2.0]], canvas_size=(6, 8)),
        BoundingBoxes([[1.0, 2.0, 3.0, 4.0]], format="XYXY", canvas_size=(6, 8)),
        BoundingBoxes([[4.0, 3.0, 2.0, 2.0, 20.0]], format="CXCYWHR", canvas_size=(6, 8)),
    ]
    for x in given:
        assert type(call(x)) is type(x)
    assert type(call(image().as_subclass(tl.Tensor))) is tl.Tensor


def test_videos_are_images_frame_by_frame():
    video = tl.from_numpy(RNG.integers(0, 256, (2, 2, 3, 6, 8), dtype=np.uint8))
    frames = video.reshape(4, 3, 6, 8)
    for call in (
        lambda x: F.resize(x, [4, 5]),
        lambda x: F.rotate(x, 20.0),
        lambda x: F.adjust_contrast(x, 0.5),
        lambda x: F.equalize(x),
        lambda x: F.autocontrast(x),
        lambda x: F.gaussian_blur(x, 3),
    ):
        whole = call(Video(video))
        single = tl.stack([call(frame) for frame in frames])
        np.testing.assert_array_equal(whole.numpy().reshape(single.shape), single.numpy())


def test_kinds_without_a_kernel():
    with pytest.raises(TypeError, match="adjust_hue"):
        F.adjust_hue(Mask(tl.zeros(2, 2)), 0.1)
    with pytest.raises(TypeError, match="horizontal_flip"):
        F.horizontal_flip("picture")
    with pytest.raises(TypeError, match="get_num_frames"):
        F.get_num_frames(image())


def test_kernels_of_ones_own():
    class Depth(TVTensor):
        pass

    class Deeper(Depth):
        pass

    depth = tl.zeros(2).as_subclass(Depth)
    with pytest.raises(TypeError, match="vertical_flip"):
        F.vertical_flip(depth)

    @F.register_kernel(F.vertical_flip, Depth)
    def flip(x):
        return x + 1

    assert F.vertical_flip(depth).tolist() == [1.0, 1.0]
    assert F.vertical_flip(tl.zeros(1).as_subclass(Deeper)).tolist() == [1.0]
    F.register_kernel("resize", Depth)(lambda x, size, **kwargs: size)
    assert F.resize(depth, [7]) == [7]
    for functional, kind in (
        (F.vertical_flip, Depth),
        (F.resize, Image),
        (F.resize, tl.Tensor),
        (sorted, Depth),
        ("no_such_functional", Depth),
    ):
        with pytest.raises(ValueError):
            F.register_kernel(functional, kind)


def test_sizes():
    assert F.get_size(image()) == [6, 8] and F.get_size(PICTURE) == [6, 8]
    assert F.get_dimensions(PICTURE) == [3, 6, 8] and F.get_num_channels(image()) == 3
    assert F.get_size(Mask(tl.zeros(4, 5))) == [4, 5]
    assert F.get_size(KeyPoints([[0, 0]], canvas_size=(3, 4))) == [3, 4]
    assert F.get_num_frames(Video(tl.zeros(5, 3, 2, 2))) == 5
    with pytest.warns(UserWarning, match="get_size"):
        assert F.get_image_size(PICTURE) == [8, 6]
    with pytest.raises(TypeError, match="two dimensions"):
        F.get_size_image(tl.zeros(3))
    assert F.is_pure_tensor(tl.zeros(1)) and not F.is_pure_tensor(image())


def test_between_kinds():
    np.testing.assert_array_equal(F.to_image(PICTURE).numpy(), BYTES)
    np.testing.assert_array_equal(F.to_image(BYTES.transpose(1, 2, 0)).numpy(), BYTES)
    assert F.to_image(np.zeros((4, 5))).shape == (1, 4, 5)
    assert F.to_pil_image(image()).tobytes() == PICTURE.tobytes()
    with pytest.raises(TypeError):
        F.to_image(3)


def test_to_dtype():
    x = tl.tensor([[[0, 1, 127, 255]]], dtype=tl.uint8)
    assert F.to_dtype(x, tl.float32).tolist() == [[[0.0, 1.0, 127.0, 255.0]]]
    scaled = F.to_dtype(x, tl.float32, scale=True)
    np.testing.assert_allclose(scaled.numpy(), x.numpy() / 255, rtol=1e-6)
    assert F.to_dtype(scaled, tl.uint8, scale=True).tolist() == x.tolist()
    assert F.to_dtype(x, tl.int16, scale=True).tolist() == [[[0, 128, 127 * 128, 255 * 128]]]
    # Labels have no range to be scaled to.
    assert F.to_dtype(Mask(x), tl.float32, scale=True).tolist() == [[[0.0, 1.0, 127.0, 255.0]]]
    with pytest.raises(TypeError):
        F.to_dtype(x, tl.bool, scale=True)


def test_values():
    x = tl.tensor([0.0, 0.2, 0.5, 1.0]).reshape(1, 2, 2)
    assert F.posterize(x, 2).flatten().tolist() == [0.0, 0.0, 0.5, 0.75]
    np.testing.assert_allclose(F.invert(x).flatten().numpy(), [1, 0.8, 0.5, 0], atol=1e-7)
    np.testing.assert_allclose(F.solarize(x, 0.5).flatten().numpy(), [0, 0.2, 0.5, 0], atol=1e-7)
    doubled = F.adjust_brightness(x, 2.0)
    np.testing.assert_allclose(doubled.flatten().numpy(), [0, 0.4, 1, 1], atol=1e-7)
    half = F.autocontrast(x * 0.5)
    np.testing.assert_allclose(half.flatten().numpy(), x.flatten().numpy(), atol=1e-6)
    out = F.normalize(x, [0.5], [0.25])
    np.testing.assert_allclose(out.flatten().numpy(), [-2, -1.2, 0, 2], atol=1e-6)
    assert F.normalize(x, [0.5, 0.1], [0.25, 1.0]).shape == (2, 2, 2)
    for call in (
        lambda: F.adjust_saturation(x, -1.0),
        lambda: F.adjust_hue(x, 0.7),
        lambda: F.adjust_gamma(x, -1.0),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="bits"):
        F.posterize(image(), 9)
    with pytest.raises(TypeError, match="channel"):
        F.adjust_brightness(tl.zeros(4, 2, 2), 1.0)


def test_gray_and_colours():
    luma = 0.2989 * BYTES[0] + 0.587 * BYTES[1] + 0.114 * BYTES[2]
    gray = F.rgb_to_grayscale(image())
    np.testing.assert_array_equal(gray.numpy()[0], luma.astype("float32").astype("uint8"))
    assert F.rgb_to_grayscale(image(), num_output_channels=3).shape == (3, 6, 8)
    assert F.grayscale_to_rgb(gray).shape == (3, 6, 8)
    assert F.grayscale_to_rgb(PICTURE.convert("L")).mode == "RGB"
    swapped = F.permute_channels(image(), [2, 0, 1])
    np.testing.assert_array_equal(swapped.numpy(), BYTES[[2, 0, 1]])
    np.testing.assert_array_equal(
        np.asarray(F.permute_channels(PICTURE, [2, 0, 1])).transpose(2, 0, 1), BYTES[[2, 0, 1]]
    )
    with pytest.raises(ValueError, match="permutation"):
        F.permute_channels(image(), [0, 1])
    # A third of the circle turns red into green.
    red = tl.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    np.testing.assert_allclose(F.adjust_hue(red, 1 / 3).flatten().numpy(), [0, 1, 0], atol=1e-6)


def test_sharpness_leaves_a_ramp_as_it_is():
    """It has no edges. The expected values are PyTorch's, by torchvision's formula."""
    ramp = tl.arange(36, dtype=tl.uint8).reshape(1, 6, 6) * 3
    for factor in (0.3, 1.3, 1.7):
        assert tl.equal(F.adjust_sharpness(ramp, factor), ramp)
    steps = (tl.arange(36) * 43 % 256).to(tl.uint8).reshape(1, 6, 6)
    assert tl.equal(F.adjust_sharpness(steps, 1.3), steps)
    edge = tl.full((1, 3, 4), 10, dtype=tl.uint8)
    edge[:, 1, 1] = 200
    assert F.adjust_sharpness(edge, 0.5)[0, 1].tolist() == [10, 141, 17, 10]
    assert F.adjust_sharpness(edge, 1.6)[0, 1].tolist() == [10, 255, 0, 10]


def test_bytes_are_resized_as_pillow_does():
    modes = F.InterpolationMode
    for mode in (modes.BILINEAR, modes.BICUBIC, modes.LANCZOS):
        for size in ([3, 4], [11, 13], [6, 3]):
            out = F.resize(image(), size, interpolation=mode, antialias=True)
            pillow = F.resize(PICTURE, size, interpolation=mode)
            wanted = np.asarray(pillow).transpose(2, 0, 1)
            # Pillow's weights have 22 bits, PyTorch's 16: halves may be rounded the other way.
            assert np.abs(out.numpy().astype(int) - wanted).max() <= 1
    with pytest.raises(ValueError, match="antialias"):
        F.resize(image(), [3, 3], interpolation=modes.LANCZOS, antialias=False)


def test_sizes_of_resize():
    for size, longest, wanted in (
        ([3, 4], None, (3, 4)),
        (3, None, (3, 4)),
        ([12], 14, (10, 14)),
        (None, 4, (3, 4)),
    ):
        assert F.resize(image(), size, max_size=longest).shape[-2:] == wanted
        points = F.resize(KeyPoints([[4.0, 3.0]], canvas_size=(6, 8)), size, max_size=longest)
        assert points.canvas_size == wanted
    same = image()
    assert F.resize_image(same, [6, 8]) is same
    for size, longest in ((None, None), ([3, 4], 5), (4, 4)):
        with pytest.raises(ValueError, match="max_size"):
            F.resize(image(), size, max_size=longest)
    assert F.resize(image(), [3, 4], "nearest").shape == (3, 3, 4)
    with pytest.raises(ValueError, match="interpolation"):
        F.resize(image(), [3, 4], "nearer")


def test_masks_keep_their_labels():
    mask = Mask(tl.tensor([[0, 7], [7, 0]], dtype=tl.uint8))
    for out in (
        F.resize(mask, [5, 5]),
        F.rotate(mask, 30.0, interpolation=F.InterpolationMode.BILINEAR),
        F.affine(mask, 20.0, [0, 0], 1.2, [0.0, 0.0], interpolation="bilinear"),
    ):
        assert set(out.unique().tolist()) <= {0, 7}
    larger = Mask(mask.repeat(3, 3))
    assert F.rotate(larger, 45.0, fill=3).unique().tolist() == [0, 3, 7]
    assert F.resize(mask, [3, 3], "nearest-exact").tolist() == [[0, 7, 7], [7, 0, 0], [7, 0, 0]]


def test_quarter_turns_are_exact():
    x = tl.arange(6.0).reshape(1, 2, 3)
    for angle in (90, 180, 270, 360, -90):
        turned = F.rotate(x, angle, expand=True)
        np.testing.assert_array_equal(turned.numpy(), np.rot90(x.numpy(), angle // 90, (1, 2)))


def test_padding():
    x = tl.arange(4.0).reshape(1, 2, 2)
    assert F.pad(x, [1, 0], fill=9).tolist() == [[[9, 0, 1, 9], [9, 2, 3, 9]]]
    coloured = F.pad(tl.zeros(3, 1, 1), [1, 0, 0, 0], fill=[1, 2, 3])
    assert coloured.flatten().tolist() == [1, 0, 2, 0, 3, 0]
    with pytest.raises(RuntimeError, match="fill"):
        F.pad(tl.zeros(3, 1, 1), 1, fill=[1, 2])
    with pytest.raises(ValueError, match="scalar"):
        F.pad(Mask(tl.zeros(1, 1)), 1, fill=[1, 2])
    with pytest.raises(ValueError, match="not supported"):
        F.pad(tl.zeros(3, 2, 2), 1, fill=[1, 2, 3], padding_mode="edge")


def test_many_crops():
    five = F.five_crop(image(), [2, 3])
    assert [type(part) for part in five] == [Image] * 5
    np.testing.assert_array_equal(five[3].numpy(), BYTES[:, -2:, -3:])
    assert len(F.ten_crop(PICTURE, 3)) == 10


def test_perspective_by_its_numbers():
    corners = [[0, 0], [7, 0], [7, 5], [0, 5]]
    moved = [[1, 1], [6, 0], [7, 5], [0, 4]]
    by_points = F.perspective(image(), corners, moved)
    np.testing.assert_array_equal(
        by_points.numpy(), F1.perspective(image().as_subclass(tl.Tensor), corners, moved).numpy()
    )
    shift = F.perspective(image(), None, None, "nearest", coefficients=[1, 0, 1, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(shift.numpy()[:, :, :-1], BYTES[:, :, 1:])
    for start, numbers in ((None, None), (None, [1.0]), (corners, [1.0] * 8)):
        with pytest.raises(ValueError):
            F.perspective(image(), start, start, coefficients=numbers)


def test_erasing():
    x = tl.zeros(1, 3, 3)
    out = F.erase(x, 1, 1, 2, 1, tl.ones(1, 1, 1))
    assert out.tolist() == [[[0, 0, 0], [0, 1, 0], [0, 1, 0]]] and x.sum() == 0
    assert F.erase(x, 0, 0, 1, 1, tl.ones(1, 1, 1), inplace=True) is x and x.sum() == 1
    assert F.erase(PICTURE, 0, 0, 1, 1, tl.full((3, 1, 1), 7)).getpixel((0, 0)) == (7, 7, 7)


def test_noise():
    tl.manual_seed(0)
    x = tl.full((1, 100, 100), 0.5)
    noise = F.gaussian_noise(x, mean=0.1, sigma=0.05, clip=False) - x
    assert abs(float(noise.mean()) - 0.1) < 2e-3 and abs(float(noise.std()) - 0.05) < 2e-3
    assert F.gaussian_noise(x, mean=2.0, sigma=0.1).unique().tolist() == [1.0]
    gray = tl.full((1, 100, 100), 100, dtype=tl.uint8)
    assert abs(F.gaussian_noise(gray, sigma=0.05).float().std() - 0.05 * 255) < 0.5
    for call in (
        lambda: F.gaussian_noise(x, sigma=-1.0),
        lambda: F.gaussian_noise(tl.zeros(1, 2, 2, dtype=tl.int64)),
        lambda: F.gaussian_noise(PICTURE),
    ):
        with pytest.raises(ValueError):
            call()


def test_jpeg():
    flat = tl.full((3, 16, 16), 128, dtype=tl.uint8)
    assert F.jpeg(flat, 90).tolist() == flat.tolist()
    wide = tl.from_numpy(RNG.integers(0, 256, (2, 3, 16, 16), dtype=np.uint8))
    fine, coarse = (F.jpeg(wide, q).float() - wide for q in (100, 5))
    assert fine.abs().mean() < coarse.abs().mean()
    assert F.jpeg(PICTURE, 50).size == PICTURE.size
    with pytest.raises(RuntimeError, match="quality"):
        F.jpeg(flat, 101)
    with pytest.raises(RuntimeError, match="uint8"):
        F.jpeg(flat.float(), 50)


def test_frames():
    video = Video(tl.arange(7).reshape(7, 1, 1, 1))
    assert F.uniform_temporal_subsample(video, 4).flatten().tolist() == [0, 2, 4, 6]
    assert F.uniform_temporal_subsample_video(tl.arange(3).reshape(3, 1, 1, 1), 1).tolist() == [
        [[[0]]]
    ]


def test_images_under_maps_have_gradients():
    x = floats(1, 5, 6).requires_grad_()
    y = F.rotate(F.resize(F.gaussian_blur(x, 3), [7, 8]), 10.0, interpolation="bilinear")
    y.sum().backward()
    assert x.grad.shape == x.shape and float(x.grad.abs().min()) > 0


def test_masks_of_bool_are_rounded_by_v2_and_cut_by_v1():
    m = tl.tensor([[[True, False, False], [False, True, True], [True, True, False]]])
    blurred = F.gaussian_blur(m, [3, 3], [0.8, 0.8])
    assert blurred.int().tolist() == [[[1, 0, 0], [1, 1, 1], [1, 1, 1]]]
    assert F1.gaussian_blur(m, [3, 3], [0.8, 0.8]).all()
    turned = F.rotate(m, 30.0, interpolation=F1.InterpolationMode.BILINEAR)
    assert turned.int().tolist() == [[[0, 0, 0], [1, 1, 1], [0, 1, 0]]]
    assert F1.rotate(m, 30.0, interpolation=F1.InterpolationMode.BILINEAR).all()
    assert F.adjust_sharpness(m, 2.0).dtype is tl.bool


def test_wide_unsigned_images_are_cut_when_resized():
    u = (tl.arange(9).reshape(1, 3, 3) * 7).to(tl.uint16)
    assert F.resize(u, [2, 2], antialias=True).int().tolist() == [[[10, 19], [36, 45]]]
    assert F1.resize(u, [2, 2], antialias=True).int().tolist() == [[[10, 19], [36, 45]]]
    assert F.gaussian_blur(u, [3, 3], [0.8, 0.8])[0, 0].int().tolist() == [13, 17, 21]
    assert F1.gaussian_blur(u, [3, 3], [0.8, 0.8])[0, 0].int().tolist() == [13, 17, 20]
