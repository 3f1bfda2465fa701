"""The frame of the transforms of version 2: what of a sample is changed, containers, forms."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import torchlab as tl
from torchlab.vision.transforms import v2
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

PIL = pytest.importorskip("PIL.Image")


def image():
    return Image(tl.arange(2 * 6 * 8, dtype=tl.uint8).reshape(2, 6, 8))


def boxes():
    return BoundingBoxes(tl.tensor([[1, 2, 4, 5]]), format="XYXY", canvas_size=(6, 8))


class Marked(v2.Transform):
    """Changes all it is given into the word "changed"."""

    def transform(self, inpt, params):
        return "changed"


PLAIN = tl.zeros(3, 6, 8)


@pytest.mark.parametrize(
    ("sample", "wanted"),
    [
        ((PLAIN, PLAIN), ("changed", PLAIN)),  # the first tensor is the image
        ((PLAIN, image()), (PLAIN, "changed")),
        ((PLAIN, Video(tl.zeros(1, 3, 6, 8))), (PLAIN, "changed")),
        ((PLAIN, PIL.new("L", (2, 2))), (PLAIN, "changed")),
        ((boxes(), PLAIN, PLAIN), ("changed", "changed", PLAIN)),
        ((Mask(tl.zeros(6, 8)), PLAIN), ("changed", "changed")),
        (("text", 3, None, PLAIN), ("text", 3, None, "changed")),
    ],
)
def test_which_parts_are_changed(sample, wanted):
    out = Marked()(*sample)
    assert len(out) == len(wanted)
    assert all(a is b or a == b for a, b in zip(out, wanted, strict=True))
    assert Marked()(sample)[0] is out[0] or Marked()(sample)[0] == out[0]


def test_the_form_of_the_sample_is_kept():
    Pair = collections.namedtuple("Pair", "x y")
    sample = {"a": [image(), (boxes(), "b")], "c": Pair(1, image())}
    out = v2.RandomHorizontalFlip(p=1)(sample)
    assert list(out) == ["a", "c"] and type(out["a"]) is list and type(out["c"]) is Pair
    assert type(out["a"][0]) is Image and out["a"][1][1] == "b" and out["c"].x == 1
    assert out["a"][1][0].tolist() == [[4, 2, 7, 5]]
    assert sample["a"][1][0].tolist() == [[1, 2, 4, 5]]
    assert v2.Identity()(7) == 7 and v2.Resize(3)([]) == []


def test_parameters_are_drawn_once_for_a_sample():
    class Counted(v2.Transform):
        seen: list = []

        def make_params(self, flat_inputs):
            self.seen.append(len(flat_inputs))
            return {"number": len(self.seen)}

        def transform(self, inpt, params):
            return params["number"]

        def check_inputs(self, flat_inputs):
            if v2.has_any(flat_inputs, Video):
                raise TypeError("no videos")

    t = Counted()
    assert t({"i": image(), "b": boxes(), "label": tl.tensor(3)}) == {
        "i": 1,
        "b": 1,
        "label": tl.tensor(3),
    }
    assert t.seen == [2]
    with pytest.raises(TypeError, match="no videos"):
        t(Video(tl.zeros(1, 3, 6, 8)))
    assert t.seen == [2]


def test_the_base_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="transform"):
        v2.Transform()(image())


def test_questions_about_samples():
    flat = [image(), boxes(), tl.zeros(2, 6, 8), "x"]
    assert v2.check_type(flat[0], (Image,)) and not v2.check_type("x", (Image, Mask))
    assert v2.check_type("x", (lambda obj: obj == "x",))
    assert v2.has_any(flat, Mask, str) and not v2.has_any(flat, Mask)
    assert v2.has_all(flat, Image, str) and not v2.has_all(flat, Image, Mask)
    assert v2.query_size(flat) == (6, 8) and v2.query_chw(flat) == (2, 6, 8)
    assert v2.get_bounding_boxes(flat) is flat[1]
    points = KeyPoints(tl.zeros(1, 2), canvas_size=(6, 8))
    assert v2.get_keypoints([*flat, points]) is points
    for call, error in (
        (lambda: v2.query_size(["x"]), TypeError),
        (lambda: v2.query_chw([boxes()]), TypeError),
        (lambda: v2.query_size([image(), tl.zeros(3, 4, 4)]), ValueError),
        (lambda: v2.query_chw([image(), tl.zeros(3, 6, 8)]), ValueError),
        (lambda: v2.get_bounding_boxes([image()]), ValueError),
        (lambda: v2.get_keypoints([image()]), ValueError),
    ):
        with pytest.raises(error, match="in the sample"):
            call()


def test_containers_pass_all_arguments_on():
    label = tl.tensor([1])
    two = v2.Compose([v2.Resize(3), v2.RandomHorizontalFlip(p=1)])
    out = two(image(), boxes(), label)
    assert type(out) is tuple and out[0].shape == (2, 3, 4) and out[2] is label
    assert two(image()).shape == (2, 3, 4)
    assert v2.Compose([lambda a, b: (b, a)])(1, 2) == (2, 1)
    assert v2.RandomApply([v2.Resize(3)], p=0)(image(), 5)[0].shape == (2, 6, 8)
    assert v2.RandomApply(tl.nn.ModuleList([v2.Resize(3)]), p=1)(image()).shape == (2, 3, 4)


def test_draws_of_the_containers():
    """Recorded with torchvision 0.28 on PyTorch after manual_seed(0)."""
    marks = [lambda x, i=i: [*x, i] for i in range(4)]
    tl.manual_seed(0)
    order, choice, apply = (
        v2.RandomOrder(marks),
        v2.RandomChoice(marks, p=[1, 2, 3, 4]),
        v2.RandomApply(marks[:1], p=0.4),
    )
    assert [order([]) for _ in range(3)] == [[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1]]
    assert [choice([])[0] for _ in range(8)] == [3, 2, 3, 1, 3, 3, 3, 3]
    assert [len(apply([])) for _ in range(8)] == [0, 0, 0, 0, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (v2.Resize(20), "Resize(size=[20], interpolation=bilinear, antialias=True)"),
        (
            v2.RandomCrop((4, 3), padding=2, fill={Image: 3}),
            "RandomCrop(size=(4, 3), padding=[2, 2, 2, 2], pad_if_needed=False,"
            " padding_mode=constant)",
        ),
        (v2.Compose([v2.RGB()]), "Compose(    RGB())"),
        (v2.Compose([v2.RGB(), v2.Identity()]), "Compose(\n      RGB()\n      Identity()\n)"),
        (v2.Lambda(abs, tl.Tensor, Image), "Lambda(abs, types=['Tensor', 'Image'])"),
        (v2.ColorJitter(0.2, hue=0.1), "ColorJitter(brightness=(0.8, 1.2), hue=(-0.1, 0.1))"),
        (v2.ToDtype(tl.float32, scale=True), "ToDtype(scale=True)"),
        (
            v2.AutoAugment(fill=3),
            "AutoAugment(interpolation=nearest, fill=3, policy=AutoAugmentPolicy.IMAGENET)",
        ),
        (
            v2.RandomChoice([v2.RGB(), v2.Identity()], p=[3, 1]),
            "RandomChoice(transforms=[RGB(), Identity()], p=[0.75, 0.25])",
        ),
        (
            v2.RandomRotation(10, center=[1, 2]),
            "RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0,"
            " center=[1, 2])",
        ),
    ],
)
def test_forms(t, text):
    assert repr(t) == text


def test_every_public_name_is_there():
    assert len(v2.__all__) == 73 == len(set(v2.__all__))
    assert all(hasattr(v2, name) for name in v2.__all__)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: v2.Compose([]), ValueError),
        (lambda: v2.Compose(v2.RGB()), TypeError),
        (lambda: v2.RandomApply(3), TypeError),
        (lambda: v2.RandomApply([v2.RGB()], p=2), ValueError),
        (lambda: v2.RandomChoice([v2.RGB()], p=[1, 2]), ValueError),
        (lambda: v2.RandomOrder(None), TypeError),
        (lambda: v2.RandomHorizontalFlip(-0.1), ValueError),
        (lambda: v2.Resize(None), ValueError),
        (lambda: v2.Resize((1, 2, 3)), ValueError),
        (lambda: v2.CenterCrop((1, 2, 3)), ValueError),
        (lambda: v2.RandomCrop(3, padding=(1, 2, 3)), ValueError),
        (lambda: v2.Pad(1, padding_mode="x"), ValueError),
        (lambda: v2.Pad(1, fill="a"), TypeError),
        (lambda: v2.RandomResizedCrop(3, scale=2), TypeError),
        (lambda: v2.RandomZoomOut(side_range=(0.5, 2)), ValueError),
        (lambda: v2.RandomRotation(-3), ValueError),
        (lambda: v2.RandomRotation(3, center=3), TypeError),
        (lambda: v2.RandomAffine(3, translate=(2, 0)), ValueError),
        (lambda: v2.RandomAffine(3, scale=(-1, 2)), ValueError),
        (lambda: v2.RandomAffine(3, shear=(1, 2, 3)), ValueError),
        (lambda: v2.RandomPerspective(2), ValueError),
        (lambda: v2.ElasticTransform([1, 2, 3]), ValueError),
        (lambda: v2.ElasticTransform(sigma=None), TypeError),
        (lambda: v2.ColorJitter(-1), ValueError),
        (lambda: v2.ColorJitter((1, 2, 3)), TypeError),
        (lambda: v2.ColorJitter(hue=0.7), ValueError),
        (lambda: v2.GaussianBlur(4), ValueError),
        (lambda: v2.GaussianBlur(3, sigma=(2, 1)), ValueError),
        (lambda: v2.RandomErasing(value="x"), ValueError),
        (lambda: v2.RandomErasing(value=None), TypeError),
        (lambda: v2.RandomErasing(scale=(0.1, 2)), ValueError),
        (lambda: v2.JPEG((5, 200)), ValueError),
        (lambda: v2.JPEG(2.5), TypeError),
        (lambda: v2.AugMix(severity=11), ValueError),
        (lambda: v2.AutoAugment("x"), ValueError),
        (lambda: v2.ToDtype("a"), ValueError),
        (lambda: v2.SanitizeBoundingBoxes(min_size=0), ValueError),
        (lambda: v2.SanitizeKeyPoints(3), ValueError),
        (lambda: v2.SetClampingMode("auto"), ValueError),
        (lambda: v2.CutMix(alpha=0), ValueError),
        (lambda: v2.MixUp(labels_getter=3), ValueError),
        (lambda: v2.LinearTransformation(tl.zeros(2, 3), tl.zeros(2)), ValueError),
        (lambda: v2.RandomCrop(9)(image()), ValueError),
        (lambda: v2.RandomIoUCrop()(image()), TypeError),
        (lambda: v2.FiveCrop(2)(image(), boxes()), TypeError),
        (lambda: v2.Normalize([0.0], [1.0])(PIL.new("L", (2, 2))), TypeError),
        (lambda: v2.ToDtype({Image: tl.float32})(boxes()), ValueError),
        (lambda: v2.RandomErasing(p=1)("x"), TypeError),
        (lambda: v2.RandomErasing(p=1, value=(1, 2, 3))(image()), ValueError),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make()


def test_arrays_are_parts_too():
    array = np.zeros((6, 8, 3), dtype=np.uint8)
    out = v2.ToImage()({"a": array, "p": PIL.fromarray(array)})
    assert type(out["a"]) is Image and out["a"].shape == out["p"].shape == (3, 6, 8)
    with pytest.warns(UserWarning, match="deprecated"):
        t = v2.ToTensor()
    assert t(array).dtype == tl.float32 and t(image()).dtype == tl.uint8
    pure = v2.ToPureTensor()(image(), boxes())
    assert [type(x) for x in pure] == [tl.Tensor, tl.Tensor]
    assert v2.ToPILImage("L")(image()[:1]).mode == "L"
    assert type(v2.PILToTensor()(PIL.new("L", (4, 3)))) is tl.Tensor
