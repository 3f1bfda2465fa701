"""torchlab.vision.io: images as tensors. The expected values are torchvision 0.28's."""

from __future__ import annotations

import io as files

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision import io

Image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)
RGB = np.kron(RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8), np.ones((3, 3, 1), np.uint8))
RGBA = np.dstack([RGB, RNG.integers(0, 256, (15, 21, 1), dtype=np.uint8)])
GRAY = (RGB.astype(int) @ [9794, 19234, 3740] >> 15).astype(np.uint8)


def data(array, form, mode=None, **options):
    file = files.BytesIO()
    image = Image.fromarray(array)
    (image if mode is None else image.convert(mode)).save(file, form, **options)
    return tl.tensor(list(file.getvalue()), dtype=tl.uint8)


def rows(x):
    return x.numpy().transpose(1, 2, 0)


def test_png_modes():
    full = np.full((15, 21, 1), 255)
    for array in (RGB, RGBA):
        png = data(array, "PNG")
        assert np.array_equal(rows(io.decode_image(png)), array)
        assert np.array_equal(rows(io.decode_image(png, "RGB")), RGB)
        assert np.array_equal(io.decode_png(png, io.ImageReadMode.GRAY)[0].numpy(), GRAY)
        alpha = array[..., 3:] if array is RGBA else full
        assert np.array_equal(rows(io.decode_png(png, "rgba")), np.dstack([RGB, alpha]))
        found = rows(io.decode_png(png, "GRAY_ALPHA"))
        assert np.array_equal(found, np.dstack([GRAY, alpha]))
    gray = data(GRAY, "PNG", transparency=int(GRAY[0, 0]))
    assert io.decode_png(gray).shape == (1, 15, 21)
    assert np.array_equal(rows(io.decode_png(gray, "RGB_ALPHA")), np.dstack([GRAY] * 3 + [full]))


def test_pngs_of_other_depths():
    few = RGB > 127
    flags = data(few[..., 0], "PNG")
    assert io.decode_png(flags).unique().tolist() == [0, 255]
    palette = Image.fromarray(RGB).quantize(9)
    file = files.BytesIO()
    palette.save(file, "PNG", transparency=2)
    png = tl.tensor(list(file.getvalue()), dtype=tl.uint8)
    assert np.array_equal(io.decode_png(png)[0].numpy(), np.array(palette))
    assert np.array_equal(rows(io.decode_png(png, "RGB")), np.array(palette.convert("RGB")))
    alpha = io.decode_png(png, "RGBA")[3].numpy()
    assert np.array_equal(alpha == 0, np.array(palette) == 2)
    deep = (GRAY.astype(np.uint16) << 8) + 3
    png = data(deep, "PNG")
    assert io.decode_png(png).dtype is tl.uint16
    assert np.array_equal(io.decode_png(png, "RGB")[2].numpy(), deep)


def test_jpeg():
    for options in ({"quality": 75}, {"quality": 95, "progressive": True}, {"subsampling": 0}):
        jpeg = data(RGB, "JPEG", **options)
        wanted = Image.open(files.BytesIO(bytes(jpeg.tolist())))
        assert np.array_equal(rows(io.decode_image(jpeg)), np.array(wanted))
    gray = data(GRAY, "JPEG")
    assert io.decode_jpeg(gray).shape == (1, 15, 21)
    assert [x.shape[0] for x in io.decode_jpeg([gray, jpeg], "RGB")] == [3, 3]
    luminance = io.decode_jpeg(jpeg, "GRAY")[0].numpy().astype(int)
    assert abs(luminance - GRAY).max() < 40
    with pytest.raises(RuntimeError, match="mode is not supported for JPEG"):
        io.decode_jpeg(jpeg, "RGBA")
    ink = data(RGB, "JPEG", "CMYK")
    assert io.decode_jpeg(ink).shape == (4, 15, 21)


def test_turned_as_exif_says():
    exif = Image.Exif()
    exif[274] = 6  # to be turned by a quarter to the right
    for form in ("PNG", "JPEG"):
        x = data(RGB, form, exif=exif)
        plain, turned = io.decode_image(x), io.decode_image(x, apply_exif_orientation=True)
        assert tl.equal(turned, plain.rot90(-1, (1, 2)))


def test_gif_and_webp():
    assert io.decode_gif(data(RGB, "GIF")).shape == (3, 15, 21)
    other = Image.fromarray(RGB[::-1].copy())
    two = io.decode_image(data(RGB, "GIF", save_all=True, append_images=[other]))
    assert two.shape == (2, 3, 15, 21)
    for array in (RGB, RGBA):
        webp = data(array, "WEBP", lossless=True, exact=True)
        assert np.array_equal(rows(io.decode_image(webp)), array)
        assert np.array_equal(rows(io.decode_webp(webp, "RGB")), RGB)
        with pytest.warns(UserWarning, match="does not support grayscale"):
            assert np.array_equal(rows(io.decode_webp(webp, "GRAY")), array)


@pytest.mark.parametrize("array", [RGB, GRAY])
def test_there_and_back(tmp_path, array):
    x = tl.tensor(array if array.ndim == 3 else array[..., None]).permute(2, 0, 1)
    io.write_png(x, tmp_path / "a.png", 9)
    assert tl.equal(io.read_image(str(tmp_path / "a.png")), x)
    io.write_jpeg(x, tmp_path / "a.jpg", 90)
    assert tl.equal(io.read_file(tmp_path / "a.jpg"), io.encode_jpeg(x, 90))
    assert np.array_equal(io.encode_jpeg(x).numpy(), data(array, "JPEG").numpy())
    assert [len(b) for b in io.encode_jpeg([x, x], 1)] == [len(io.encode_jpeg(x, 1))] * 2


def test_what_is_refused(tmp_path):
    (tmp_path / "text").write_text("this is no image at all")
    png, x = data(RGB, "PNG"), tl.zeros(3, 4, 4, dtype=tl.uint8)
    for call, kind, says in (
        (lambda: io.decode_image(tmp_path / "text"), RuntimeError, "Unsupported image file"),
        (lambda: io.decode_image(tmp_path / "none"), RuntimeError, "No such file"),
        (lambda: io.decode_jpeg(png), RuntimeError, "are no JPEG image"),
        (lambda: io.decode_image(png[:99]), RuntimeError, "incomplete"),
        (lambda: io.decode_image(data(RGB, "JPEG")[:400]), RuntimeError, "incomplete"),
        (lambda: io.decode_png(x), RuntimeError, "1-dimensional tensor of dtype uint8"),
        (lambda: io.decode_png(png[:0]), RuntimeError, "non empty"),
        (lambda: io.decode_image(png, "CMYK"), KeyError, "CMYK"),
        (lambda: io.decode_jpeg([]), ValueError, "at least one"),
        (lambda: io.encode_jpeg([]), ValueError, "at least one"),
        (lambda: io.encode_jpeg(x, 0), ValueError, "between 1 and 100"),
        (lambda: io.encode_png(x, 10), RuntimeError, "between 0 and 9"),
        (lambda: io.encode_png(x.float()), RuntimeError, "dtype should be uint8"),
        (lambda: io.encode_png(x[0]), RuntimeError, "3-dimensional"),
        (lambda: io.encode_jpeg(x[:2]), RuntimeError, "channels should be 1 or 3, got: 2"),
        (lambda: io.write_file(tmp_path / "a", x), RuntimeError, "1-dimensional"),
    ):
        with pytest.raises(kind, match=says):
            call()
