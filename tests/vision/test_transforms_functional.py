"""torchlab.vision.transforms.functional against closed forms, NumPy and Pillow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision import tv_tensors
from torchlab.vision.transforms import InterpolationMode
from torchlab.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (3, 6, 8), dtype=np.uint8)
FLOATS = RNG.random((3, 6, 8)).astype("float32")
PICTURE = Image.fromarray(BYTES.transpose(1, 2, 0))


def tensor(a):
    return tl.from_numpy(a.copy())


def channels_first(pic):
    return np.asarray(pic).transpose(2, 0, 1)


def test_pictures_to_tensors_and_back():
    t = F.to_tensor(PICTURE)
    assert t.dtype == tl.float32
    np.testing.assert_array_equal(t.numpy(), BYTES.astype("float32") / np.float32(255))
    np.testing.assert_array_equal(F.pil_to_tensor(PICTURE).numpy(), BYTES)
    assert F.to_pil_image(t).tobytes() == PICTURE.tobytes()
    assert F.to_pil_image(tensor(BYTES)).tobytes() == PICTURE.tobytes()
    assert F.to_pil_image(BYTES.transpose(1, 2, 0)).tobytes() == PICTURE.tobytes()
    assert F.to_tensor(PICTURE.convert("1")).unique().tolist() == [0.0, 1.0]
    for mode in ("L", "LA", "RGBA", "I", "F"):
        pic = PICTURE.convert(mode)
        back = F.to_pil_image(F.pil_to_tensor(pic), mode)
        assert back.mode == mode and back.tobytes() == pic.tobytes()


def test_what_is_no_picture():
    with pytest.raises(TypeError, match="PIL Image or ndarray"):
        F.to_tensor(tl.zeros(3))
    with pytest.raises(ValueError, match="2/3 dimensional"):
        F.to_tensor(np.zeros(3))
    with pytest.raises(ValueError, match="> 4 channels"):
        F.to_pil_image(tl.zeros(5, 2, 2))
    with pytest.raises(ValueError, match="Incorrect mode"):
        F.to_pil_image(tensor(BYTES[:1]), "F")
    with pytest.raises(TypeError, match="Unexpected type"):
        F.hflip(3)


def test_convert_image_dtype_scales_to_the_other_types_range():
    one = tl.tensor([[0.0, 0.5, 1.0]])
    assert F.convert_image_dtype(one, tl.uint8).tolist() == [[0, 127, 255]]
    assert F.convert_image_dtype(tl.tensor([[0, 255]], dtype=tl.uint8)).tolist() == [[0.0, 1.0]]
    wide = F.convert_image_dtype(tl.tensor([[0, 255]], dtype=tl.uint8), tl.int16)
    assert wide.tolist() == [[0, 255 * 128]]
    assert F.convert_image_dtype(wide, tl.uint8).tolist() == [[0, 255]]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(one, tl.int32)


def test_normalize():
    x = tensor(FLOATS)
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]
    wanted = (FLOATS - np.array(mean)[:, None, None]) / np.array(std)[:, None, None]
    np.testing.assert_allclose(F.normalize(x, mean, std).numpy(), wanted, rtol=1e-5)
    np.testing.assert_array_equal(x.numpy(), FLOATS)
    assert F.normalize(x, mean, std, inplace=True) is x
    with pytest.raises(TypeError, match="float tensor"):
        F.normalize(tensor(BYTES), mean, std)
    with pytest.raises(ValueError, match="zero"):
        F.normalize(x, [0.0], [0.0])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_pad_is_numpys(mode):
    wanted = np.pad(BYTES, [(0, 0), (2, 4), (1, 3)], mode=mode)
    np.testing.assert_array_equal(F.pad(tensor(BYTES), [1, 2, 3, 4], 0, mode).numpy(), wanted)
    np.testing.assert_array_equal(channels_first(F.pad(PICTURE, [1, 2, 3, 4], 0, mode)), wanted)


def test_pad_errors_and_negative_sides():
    cut = F.pad(tensor(BYTES), [-1, -2, 0, 0], padding_mode="edge")
    np.testing.assert_array_equal(cut.numpy(), BYTES[:, 2:, 1:])
    with pytest.raises(RuntimeError, match="reflection"):
        F.pad(tensor(BYTES), 6, padding_mode="reflect")
    with pytest.raises(ValueError, match="1, 2, or 4"):
        F.pad(tensor(BYTES), [1, 2, 3])
    with pytest.raises(ValueError, match="Padding mode"):
        F.pad(tensor(BYTES), 1, padding_mode="wrap")


def test_crops_and_flips():
    x = tensor(BYTES)
    np.testing.assert_array_equal(F.crop(x, 1, 2, 3, 4).numpy(), BYTES[:, 1:4, 2:6])
    outside = F.crop(x, -1, 6, 3, 4).numpy()
    wanted = np.zeros((3, 3, 4), np.uint8)
    wanted[:, 1:, :2] = BYTES[:, :2, 6:]
    np.testing.assert_array_equal(outside, wanted)
    np.testing.assert_array_equal(channels_first(F.crop(PICTURE, -1, 6, 3, 4)), wanted)
    assert not F.crop(x, -9, -9, 2, 2).numpy().any()
    np.testing.assert_array_equal(F.center_crop(x, [2, 4]).numpy(), BYTES[:, 2:4, 2:6])
    assert F.center_crop(x, 10).shape == (3, 10, 10)
    five = F.five_crop(x, 3)
    np.testing.assert_array_equal(five[3].numpy(), BYTES[:, 3:, 5:])
    np.testing.assert_array_equal(F.ten_crop(x, 3)[5].numpy(), BYTES[:, :3, :4:-1])
    np.testing.assert_array_equal(F.hflip(x).numpy(), BYTES[:, :, ::-1])
    np.testing.assert_array_equal(F.vflip(x).numpy(), BYTES[:, ::-1])
    with pytest.raises(ValueError, match="bigger than input size"):
        F.five_crop(x, 7)


def test_resize_takes_the_shorter_edge():
    x = tensor(FLOATS)
    assert F.resize(x, 3).shape == (3, 3, 4)
    assert F.resize(x, [12]).shape == (3, 12, 16)
    assert F.resize(x, 6, max_size=7).shape == (3, 5, 7)
    assert F.resize(x, [6, 8]) is x
    twice = F.resize(x, [12, 16], InterpolationMode.NEAREST).numpy()
    np.testing.assert_array_equal(twice, FLOATS.repeat(2, 1).repeat(2, 2))
    pic = F.resize(PICTURE, [3, 5], InterpolationMode.BICUBIC)
    assert pic.tobytes() == PICTURE.resize((5, 3), Image.BICUBIC).tobytes()
    with pytest.raises(ValueError, match="max_size"):
        F.resize(x, 6, max_size=6)
    with pytest.raises(ValueError, match="unsupported with Tensor"):
        F.resize(x, 3, InterpolationMode.LANCZOS)


def test_resize_with_antialias_is_pillows_of_floats():
    plane = FLOATS[0]
    wanted = np.asarray(Image.fromarray(plane).resize((3, 4), Image.BILINEAR))
    found = F.resize(tensor(plane)[None], [4, 3])[0]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)


def test_quarter_turns():
    square = BYTES[:, :6, :6]
    np.testing.assert_array_equal(F.rotate(tensor(square), 90).numpy(), np.rot90(square, 1, (1, 2)))
    turned = F.rotate(tensor(BYTES[:, :6, :6]), 180, expand=True)
    np.testing.assert_array_equal(turned.numpy(), square[:, ::-1, ::-1])
    pic = F.rotate(PICTURE, 30, fill=7)
    assert pic.tobytes() == PICTURE.rotate(30, fillcolor=(7, 7, 7)).tobytes()
    assert F.rotate(tensor(BYTES), 45, expand=True).shape == (3, 10, 10)


def test_affine_moves_and_fills():
    out = F.affine(tensor(BYTES), 0.0, [2, 1], 1.0, 0.0, fill=[9.0]).numpy()
    wanted = np.full_like(BYTES, 9)
    wanted[:, 1:, 2:] = BYTES[:, :-1, :-2]
    np.testing.assert_array_equal(out, wanted)
    pic = F.affine(PICTURE, 0.0, [2, 1], 1.0, 0.0, fill=9)
    np.testing.assert_array_equal(channels_first(pic), wanted)
    with pytest.raises(ValueError, match="scale should be positive"):
        F.affine(tensor(BYTES), 0.0, [0, 0], 0.0, 0.0)
    with pytest.raises(ValueError, match="cannot broadcast"):
        F.affine(tensor(BYTES), 0.0, [0, 0], 1.0, 0.0, fill=[1.0, 2.0])


def test_perspective_and_elastic_identities():
    corners = [[0, 0], [7, 0], [7, 5], [0, 5]]
    same = F.perspective(tensor(FLOATS), corners, corners)
    np.testing.assert_allclose(same.numpy(), FLOATS, atol=1e-5)
    moved = [[x + 1, y + 2] for x, y in corners]
    out = F.perspective(tensor(FLOATS), corners, moved).numpy()
    np.testing.assert_allclose(out[:, 2:, 1:], FLOATS[:, :-2, :-1], atol=1e-4)
    still = F.elastic_transform(tensor(FLOATS), tl.zeros(1, 6, 8, 2))
    np.testing.assert_allclose(still.numpy(), FLOATS, atol=1e-5)
    with pytest.raises(ValueError, match="four corners"):
        F.perspective(tensor(FLOATS), corners[:3], corners[:3])


def test_gaussian_blur_of_a_point():
    x = tl.zeros(1, 7, 7)
    x[0, 3, 3] = 1.0
    w = np.exp(-0.5 * (np.arange(-1, 2) / 0.8) ** 2)
    w /= w.sum()
    out = F.gaussian_blur(x, 3, 0.8).numpy()[0]
    np.testing.assert_allclose(out[2:5, 2:5], np.outer(w, w), rtol=1e-5)
    assert math.isclose(out.sum(), 1.0, rel_tol=1e-5)
    with pytest.raises(ValueError, match="odd and positive"):
        F.gaussian_blur(x, 4)


def test_colours_of_tensors():
    x = tensor(BYTES)
    f = BYTES.astype("float32")
    luma = np.floor(0.2989 * f[0] + 0.587 * f[1] + 0.114 * f[2])
    gray = F.rgb_to_grayscale(x).numpy()
    assert np.abs(gray[0].astype(int) - luma).max() <= 1
    half = F.adjust_brightness(x, 0.5).numpy()
    np.testing.assert_array_equal(half, np.floor(f * 0.5).astype("uint8"))
    np.testing.assert_array_equal(F.adjust_brightness(x, 2).numpy(), np.minimum(f * 2, 255))
    np.testing.assert_array_equal(F.adjust_saturation(x, 0).numpy()[1], gray[0])
    np.testing.assert_array_equal(F.invert(x).numpy(), 255 - BYTES)
    np.testing.assert_array_equal(F.posterize(x, 3).numpy(), BYTES & 0b11100000)
    np.testing.assert_array_equal(
        F.solarize(x, 100).numpy(), np.where(BYTES >= 100, 255 - BYTES, BYTES)
    )
    np.testing.assert_allclose(
        F.adjust_gamma(tensor(FLOATS), 2.0, 0.5).numpy(), 0.5 * FLOATS**2, rtol=1e-5
    )
    spread = F.autocontrast(tensor(FLOATS)).numpy()
    np.testing.assert_allclose(spread.min((1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(spread.max((1, 2)), 1, rtol=1e-6)
    mean = F.adjust_contrast(tensor(FLOATS), 0.0).numpy()
    np.testing.assert_allclose(mean, (luma_of(FLOATS)).mean(), rtol=1e-5)
    smooth = F.adjust_sharpness(tensor(FLOATS), 0.0).numpy()
    inner = (FLOATS[0, :3, :3].sum() + 4 * FLOATS[0, 1, 1]) / 13
    np.testing.assert_allclose(smooth[0, 1, 1], inner, rtol=1e-5)
    with pytest.raises(ValueError, match="non-negative"):
        F.adjust_brightness(x, -1)


def luma_of(f):
    return 0.2989 * f[0] + 0.587 * f[1] + 0.114 * f[2]


def test_hue_turns_the_primaries():
    red = tl.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    for turn, wanted in ((1 / 3, [0, 1, 0]), (-1 / 3, [0, 0, 1]), (0.5, [0, 1, 1])):
        found = F.adjust_hue(red, turn).flatten()
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5)
    with pytest.raises(ValueError, match="hue_factor"):
        F.adjust_hue(red, 0.6)


@pytest.mark.parametrize("name", ["equalize", "invert", "solarize", "posterize"])
def test_integer_colours_of_tensors_are_pillows(name):
    more = {"solarize": (77,), "posterize": (2,)}.get(name, ())
    large = RNG.integers(40, 200, (3, 40, 40), dtype=np.uint8)
    pic = Image.fromarray(large.transpose(1, 2, 0))
    found = getattr(F, name)(tensor(large), *more).numpy()
    np.testing.assert_array_equal(found, channels_first(getattr(F, name)(pic, *more)))


def test_erase():
    x = tensor(FLOATS)
    out = F.erase(x, 1, 2, 3, 4, tl.zeros(1, 1, 1))
    wanted = FLOATS.copy()
    wanted[:, 1:4, 2:6] = 0
    np.testing.assert_array_equal(out.numpy(), wanted)
    np.testing.assert_array_equal(x.numpy(), FLOATS)
    with pytest.raises(TypeError, match="Tensor Image"):
        F.erase(PICTURE, 0, 0, 1, 1, tl.zeros(1))


def test_erasing_keeps_the_class_of_a_tv_tensor():
    out = F.erase(tv_tensors.Image(tl.ones(3, 4, 4)), 1, 1, 2, 2, tl.zeros(3, 1, 1))
    assert type(out) is tv_tensors.Image and out.sum() == 36


def test_pictures_of_16_bits_are_read_as_signed():
    picture = Image.fromarray(np.array([[1, 40000]], np.uint16))
    assert picture.mode == "I;16"
    out = F.to_tensor(picture)
    assert out.dtype is tl.int16 and out.tolist() == [[[1, -25536]]]
    assert F.pil_to_tensor(picture).tolist() == [[[1, 40000]]]


def test_gamma_of_two_channels():
    with pytest.raises(TypeError, match=r"permitted channel values are \[1, 3\], but found 2"):
        F.adjust_gamma(tl.ones(2, 4, 4), 2.0)
