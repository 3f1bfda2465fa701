"""Detectors in one stage, and keypoints, against what torchvision gave for the same seed and made
images; their parts by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

import torchlab as torch
from tests.vision.model_facts import numbers, same, wave, weights
from torchlab import nn
from torchlab.vision import models, ops
from torchlab.vision.models import detection
from torchlab.vision.models.detection import _utils
from torchlab.vision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchlab.vision.models.detection.fcos import FCOS, FCOSHead
from torchlab.vision.models.detection.image_list import ImageList
from torchlab.vision.models.detection.keypoint_rcnn import (
    KeypointRCNN,
    KeypointRCNNHeads,
    KeypointRCNNPredictor,
)
from torchlab.vision.models.detection.retinanet import RetinaNet, RetinaNetHead
from torchlab.vision.models.detection.roi_heads import (
    heatmaps_to_keypoints,
    keypointrcnn_loss,
    keypoints_to_heatmap,
)
from torchlab.vision.models.detection.ssd import SSD

PLAIN: dict[str, Any] = {"weights_backbone": None}
SIZES: dict[str, Any] = {"min_size": 64, "max_size": 96}


class Plain(nn.Module):
    """Two maps of an image, an eighth and a sixteenth of its size."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 7, stride=8, padding=3)
        self.second = nn.Conv2d(32, 32, 3, stride=2, padding=1)

    def forward(self, x: Any) -> Any:
        fine = torch.tanh(self.first(x))
        return {"0": fine, "1": self.second(fine)}


class Two(Plain):
    """The same, and how wide they are."""

    out_channels = 32


def _retinanet() -> Any:
    anchors = AnchorGenerator(((16, 24), (40, 56)), ((0.5, 1.0),) * 2)
    return RetinaNet(Two(), 4, anchor_generator=anchors, score_thresh=0.0101, **SIZES)


def _retinanet_v2() -> Any:
    anchors = AnchorGenerator(((16, 24), (40, 56)), ((0.5, 1.0),) * 2)
    head = RetinaNetHead(32, 4, 4, norm_layer=lambda n: nn.GroupNorm(8, n))
    head.regression_head._loss_type = "giou"
    facts: dict[str, Any] = {"score_thresh": 0.01, "topk_candidates": 50, **SIZES}
    return RetinaNet(Two(), 4, anchor_generator=anchors, head=head, **facts)


def _fcos() -> Any:
    anchors = AnchorGenerator(((8,), (16,)), ((1.0,),) * 2)
    head = FCOSHead(32, 1, 4, num_convs=1)
    facts: dict[str, Any] = {"score_thresh": 0.05, "detections_per_img": 20, **SIZES}
    return FCOS(Two(), 4, anchor_generator=anchors, head=head, **facts)


def _ssd() -> Any:
    boxes = DefaultBoxGenerator([[2], [2, 3]], 0.2, 0.9)
    return SSD(Plain(), boxes, (72, 64), 4, score_thresh=0.25, detections_per_img=30)


def _keypoints() -> Any:
    pool, anchors = ops.MultiScaleRoIAlign, AnchorGenerator(((16,), (40,)), ((1.0,),) * 2)
    return KeypointRCNN(
        Two(), 2, rpn_anchor_generator=anchors, box_roi_pool=pool(["0", "1"], 3, 2),
        keypoint_roi_pool=pool(["0", "1"], 4, 2), keypoint_head=KeypointRCNNHeads(32, (16,)),
        keypoint_predictor=KeypointRCNNPredictor(16, 3), box_detections_per_img=5,
        rpn_post_nms_top_n_test=12, box_score_thresh=0.0, box_batch_size_per_image=16, **SIZES,
    )  # fmt: skip


CASES: dict[str, Any] = {
    "retinanet": _retinanet, "retinanet_v2": _retinanet_v2, "fcos": _fcos, "ssd": _ssd,
    "keypoints": _keypoints,
}  # fmt: skip


def _data() -> tuple[list[Any], list[dict[str, Any]]]:
    """Two images, with two objects and one."""
    images = [wave(3, 64, 72).abs(), wave(3, 56, 72).abs() ** 2]
    boxes = [[[4.0, 6, 30, 40], [20.0, 8, 62, 34]], [[10.0, 12, 33, 32]]]
    labels = [[1, 1], [1]]
    targets = []
    for own, kinds in zip(boxes, labels, strict=True):
        box = torch.tensor(own, dtype=torch.float64)
        middle = (box[:, :2] + box[:, 2:]) / 2
        points = torch.stack([middle, middle - 3, box[:, 2:]], 1)
        seen = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64).expand(len(own), 3)[..., None]
        keypoints = torch.cat([points, seen], -1).float()
        targets.append({"boxes": box, "labels": torch.tensor(kinds), "keypoints": keypoints})
    return images, targets


def case(name: str) -> list[Any]:
    """The weights, the losses in training, with an image that shows nothing too, and detections."""
    torch.manual_seed(0)
    model = CASES[name]()
    made = weights(model)
    model.double()
    images, targets = _data()
    torch.manual_seed(1)
    losses = model.train()(images, targets)
    made += [float(v.detach()) for v in losses.values()]
    sum(losses.values()).backward()
    grads = [p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None]
    made += [len(grads), sum(grads)]
    targets[1] = {k: v[:0] for k, v in targets[1].items()}
    torch.manual_seed(2)
    made += [float(v.detach()) for v in model(images, targets).values()]
    with torch.no_grad():
        for found in model.eval()(images):
            made += [len(found["scores"]), *numbers(found)]
    return made


EXPECTED: dict[str, list[Any]] = {
    "retinanet": [
        "0caeb612", "8d64b9a7", 97216, -70.1487471, 1203.75445, 1.12878735, 0.553927288, 24,
        3.86852584, 0.565144333, 0.323108909, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ],
    "retinanet_v2": [
        "7ece483e", "cf33487d", 97472, 193.102144, 1458.96591, 1.09778196, 0.523745565, 32,
        3605.74478, 0.541903182, 0.242638573, 73, 9545.03631, 672.175776, 0.880338325,
        0.103178255, 109, 16.4012195, 73, 8740.53193, 616.334852, 0.889885935, 0.104354301, 92,
        14.6287388,
    ],
    "fcos": [
        "f6133761", "d3998d63", 35209, 43.2933982, 715.375868, 1.13613867, 0.999255288,
        0.699711179, 18, 162.387935, 1.1380448, 0.999835821, 0.696473159, 20, 2245.83415,
        296.456638, 1.64418938, 0.367779324, 48, 12, 20, 2100.06893, 278.133595, 1.61970822,
        0.362252576, 46, 11.6619038,
    ],
    "ssd": [
        "46430c10", "09cffb4b", 37104, 6.25318022, 1756.86347, 2.97972774, 9.21932913, 12,
        1915.37763, 3.13421677, 9.08321025, 30, 4274.08195, 446.325208, 14.8266766, 2.72801092,
        64, 12.5698051, 30, 4104.36498, 426.430541, 15.9185017, 2.931669, 61, 12.0415946,
    ],
    "keypoints": [
        "30da0f46", "412bfb51", 1384578, -7.51698212, 26306.9567, 0.704365411, 0.237890613,
        5.52716989, 0.693184912, 0.00853048268, 22, 545.869746, 0.702072697, 0.23674648,
        5.51504405, 0.69314903, 0.00501202572, 5, 593.382356, 155.035536, 5, 2.23606798,
        2.57285252, 1.15063971, 895.360138, 184.796931, 6.45138104, 1.76211072, 5, 638.788328,
        168.625292, 5, 2.23606798, 2.56153556, 1.14557124, 951.575701, 198.412451, 4.29849949,
        1.18265524,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_facts(name: str) -> None:
    same(case(name), EXPECTED[name])


def test_keys() -> None:
    (found,) = _retinanet().eval()([torch.rand(3, 64, 64)])
    assert list(found) == ["boxes", "scores", "labels"]
    (found,) = _keypoints().eval()([torch.rand(3, 64, 64)])
    assert list(found) == ["boxes", "labels", "scores", "keypoints", "keypoints_scores"]
    assert found["keypoints"].shape[1:] == (3, 3)
    assert (found["keypoints"][..., 2] == 1).all()


# --- builders

# https://docs.pytorch.org/vision/0.28/models.html#object-detection: "Params" of the weights
PARAMETERS = {
    "retinanet_resnet50_fpn": 34_014_999, "retinanet_resnet50_fpn_v2": 38_198_935,
    "fcos_resnet50_fpn": 32_269_600, "ssd300_vgg16": 35_641_826,
    "keypointrcnn_resnet50_fpn": 59_137_258,
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = models.get_model(name, **PLAIN)
    frozen = 0  # the documented numbers leave out the normalization that the weights had frozen
    if name not in ("retinanet_resnet50_fpn_v2", "ssd300_vgg16"):
        parts = model.backbone.body.modules()
        frozen = sum(2 * m.weight.numel() for m in parts if isinstance(m, nn.BatchNorm2d))
    assert sum(p.numel() for p in model.parameters()) - frozen == PARAMETERS[name]
    assert models.get_model_weights(name).DEFAULT.meta["num_params"] == PARAMETERS[name]


def test_ssdlite() -> None:
    torch.manual_seed(0)
    model = detection.ssdlite320_mobilenet_v3_large(num_classes=3, **PLAIN)
    # of torchvision, the same seed
    same(weights(model), SSDLITE)
    assert model.backbone.training
    assert model.transform.fixed_size == (320, 320)
    with pytest.warns(UserWarning, match="already fixed"), pytest.raises(TypeError):
        detection.ssdlite320_mobilenet_v3_large(size=(3, 3), **PLAIN)


SSDLITE: list[Any] = [
    "5bbe77d1", "07a248a7", 2220380, 32962.2154, 85188.8236,
]  # fmt: skip


# --- parts by hand


def test_default_boxes_by_hand() -> None:
    make = DefaultBoxGenerator([[2]], 0.25, 0.64, clip=True)
    assert make.num_anchors_per_location() == [4]
    assert repr(make) == (
        "DefaultBoxGenerator(aspect_ratios=[[2]], clip=True, scales=[0.25, 0.64], steps=None)"
    )
    images = ImageList(torch.zeros(2, 3, 40, 80), [(40, 80)] * 2)
    one, two = make(images, [torch.zeros(2, 8, 1, 2)])
    assert torch.equal(one, two)
    assert one.shape == (8, 4)
    # centre (20, 20); a quarter, then √(0.25 · 0.64) = 0.4 of the sides
    torch.testing.assert_close(one[0], torch.tensor([10.0, 15.0, 30.0, 25.0]))
    torch.testing.assert_close(one[1], torch.tensor([4.0, 12.0, 36.0, 28.0]))
    wide = 80 * 0.25 * math.sqrt(2)
    assert (one[6, 2] - one[6, 0]).item() == pytest.approx(wide, rel=1e-6)
    stepped = DefaultBoxGenerator([[]], scales=[0.5, 1.0], steps=[10])
    assert stepped(images, [torch.zeros(2, 8, 1, 1)])[0][0].tolist() == [-15, -5, 25, 15]
    assert DefaultBoxGenerator([[2], [2]]).scales == [0.15, 0.9, 1.0]
    with pytest.raises(ValueError, match="should have the same length"):
        DefaultBoxGenerator([[2], [2]], steps=[1])


def test_distances_to_the_sides_by_hand() -> None:
    anchor = torch.tensor([[0.0, 0.0, 10.0, 20.0]])
    box = torch.tensor([[2.0, 5.0, 22.0, 15.0]])
    code = _utils.BoxLinearCoder().encode(anchor, box)
    torch.testing.assert_close(code, torch.tensor([[0.3, 0.25, 1.7, 0.25]]))
    torch.testing.assert_close(_utils.BoxLinearCoder().decode(code, anchor), box)
    plain = _utils.BoxLinearCoder(normalize_by_size=False)
    assert plain.encode(anchor, box).tolist() == [[3.0, 5.0, 17.0, 5.0]]
    assert plain.decode(plain.encode(anchor, box), anchor).tolist() == box.tolist()


def test_every_true_box_has_a_match() -> None:
    quality = torch.tensor([[0.9, 0.5, 0.1, 0.2], [0.3, 0.4, 0.0, 0.2]])
    assert _utils.SSDMatcher(0.6)(quality).tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize("kind", ["l1", "smooth_l1", "giou", "diou", "ciou"])
def test_distances_of_boxes(kind: str) -> None:
    coder = _utils.BoxCoder((1.0, 1.0, 1.0, 1.0))
    anchors, truth = torch.tensor([[0.0, 0, 10, 10]]), torch.tensor([[0.0, 0, 10, 20]])
    right = coder.encode_single(truth, anchors)
    loss = _utils._box_loss(kind, coder, anchors, truth, right)
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    loss = _utils._box_loss(kind, coder, anchors, truth, torch.zeros(1, 4))
    log = math.log(2)
    expected = {
        "l1": 0.5 + log, "smooth_l1": 0.125 + log**2 / 2, "giou": 0.5, "diou": 0.5 + 25 / 500,
    }  # fmt: skip
    if kind in expected:
        assert loss.item() == pytest.approx(expected[kind], rel=1e-5)
    with pytest.raises(AssertionError, match="Unsupported loss: x"):
        _utils._box_loss("x", coder, anchors, truth, right)


def test_keypoints_by_hand() -> None:
    boxes = torch.tensor([[10.0, 20.0, 18.0, 24.0]])
    points = torch.tensor(
        [[[11.0, 23.5, 1.0], [18.0, 24.0, 2.0], [9.0, 22.0, 1.0], [12.0, 21.0, 0.0]]]
    )
    pixels, seen = keypoints_to_heatmap(points, boxes, 4)
    assert seen.tolist() == [[1, 1, 0, 0]]  # the third is outside, the fourth hidden
    assert pixels.tolist() == [[4 * 3 + 0, 4 * 3 + 3, 0, 0]]
    heat = torch.zeros(1, 2, 4, 4)
    heat[0, 0, 3, 0] = heat[0, 1, 1, 2] = 5.0
    places, scores = heatmaps_to_keypoints(heat, boxes)
    assert places.shape == (1, 2, 3)
    assert places[0, 0].tolist() == [10.5, 23.5, 1.0]
    assert places[0, 1, 1].item() == 21.5
    assert scores[0, 0].item() > 4
    loss = keypointrcnn_loss(heat[:, :1], [boxes], [points[:, :1]], [torch.tensor([0])])
    assert loss.item() == pytest.approx(math.log(math.exp(5) + 15) - 5, rel=1e-5)
    hidden = torch.zeros(1, 1, 3)
    assert keypointrcnn_loss(heat[:, :1], [boxes], [hidden], [torch.tensor([0])]).item() == 0.0


def test_wrong_targets() -> None:
    image, label = [torch.rand(3, 64, 64)], torch.tensor([1])
    for make in (_retinanet, _fcos, _ssd):
        model = make().train()
        for targets, match in (
            (None, "none when in training"),
            ([{"boxes": torch.ones(4), "labels": label}], r"shape \[N, 4\]"),
            ([{"boxes": [1], "labels": label}], "of type Tensor"),
            ([{"boxes": torch.ones(1, 4), "labels": label}], "positive height and width"),
        ):
            with pytest.raises(AssertionError, match=match):
                model(image, targets)
    box = torch.tensor([[1.0, 1, 20, 20]])
    with pytest.raises(KeyError, match="keypoints"):
        _keypoints().train()(image, [{"boxes": box, "labels": label}])
    keypoints = torch.ones(1, 3, 3, dtype=torch.float64)
    with pytest.raises(TypeError, match="keypoints must of float type"):
        _keypoints().train()(image, [{"boxes": box, "labels": label, "keypoints": keypoints}])


def test_wrong_parts() -> None:
    plain: Any = nn.ReLU()
    for make, error, match in (
        (lambda: RetinaNet(plain, 3), ValueError, "out_channels"),
        (lambda: FCOS(plain, 3), ValueError, "out_channels"),
        (lambda: RetinaNet(Two(), 3, anchor_generator=3), TypeError, "should be of type Anchor"),
        (
            lambda: FCOS(Two(), 3, anchor_generator=AnchorGenerator(((8, 9),))),
            ValueError,
            r"\[0\] should be 1 instead of 6",
        ),
        (lambda: SSD(Plain(), DefaultBoxGenerator([[2]]), (64, 64), 3), ValueError, "do not match"),
        (lambda: KeypointRCNN(Two(), 2, keypoint_roi_pool=plain), TypeError, "MultiScaleRoIAlign"),
    ):
        with pytest.raises(error, match=match):
            make()


def test_head_loads_names_of_before_version_2() -> None:
    head, other = RetinaNetHead(4, 1, 2), RetinaNetHead(4, 1, 2)
    old = {}
    for name, value in head.state_dict().items():
        for i in range(4):
            name = name.replace(f"conv.{i}.0", f"conv.{2 * i}") if f"conv.{i}.0" in name else name
        old[name] = value
    assert "classification_head.conv.6.weight" in old
    other.load_state_dict(old)
    torch.testing.assert_close(other.state_dict(), head.state_dict())
