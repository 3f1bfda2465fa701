"""Classifiers against what torchvision gave for the same seed and the same made images."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchlab as torch
from tests.vision.model_facts import facts, same, wave
from torchlab.vision import models, ops
from torchlab.vision.models import inception, maxvit, mnasnet, regnet, shufflenetv2
from torchlab.vision.models.googlenet import GoogLeNet, GoogLeNetOutputs

BATCH = (wave(2, 3, 64, 64),)
CASES: dict[str, Any] = {
    "googlenet": (
        lambda: models.googlenet(num_classes=4, init_weights=False, transform_input=True), False,
    ),
    "googlenet, training": (lambda: models.googlenet(num_classes=4, init_weights=True), True),
    "inception_v3": (
        lambda: models.inception_v3(
            num_classes=4, init_weights=False, transform_input=True, aux_logits=False
        ),
        False,
    ),
    "squeezenet1_0": (lambda: models.squeezenet1_0(num_classes=4), False),
    "squeezenet1_1": (lambda: models.squeezenet1_1(num_classes=4), True),
    "shufflenet_v2_x0_5": (lambda: models.shufflenet_v2_x0_5(num_classes=4), True),
    "shufflenet_v2_x1_0": (lambda: models.shufflenet_v2_x1_0(num_classes=4), False),
    "mnasnet0_5": (lambda: models.mnasnet0_5(num_classes=4), True),
    "mnasnet1_3": (lambda: models.mnasnet1_3(num_classes=4), False),
    "regnet_x_400mf": (lambda: models.regnet_x_400mf(num_classes=4), True),
    "regnet_y_400mf": (lambda: models.regnet_y_400mf(num_classes=4), False),
    "maxvit": (
        lambda: models.MaxVit((64, 64), 8, 2, [8, 16], [1, 2], 4, 0.1, num_classes=3), False,
    ),
    "maxvit, training": (
        lambda: models.MaxVit((64, 64), 8, 2, [8, 16], [1, 2], 4, 0.3, num_classes=3), True,
    ),
}  # fmt: skip
EXPECTED: dict[str, list[Any]] = {
    "googlenet": [
        "984ca81a", "6da9451a", 9942188, 15081.9127, 161224.138, -0.00550586508, 0.0397130895,
    ],
    "googlenet, training": [
        "984ca81a", "6da9451a", 9942188, 14998.0612, 94298.9038, 0.00463085252, 0.42588144,
        0.226519741, 0.487728384, 0.13362909, 0.370664241,
    ],
    "inception_v3": [
        "af861340", "29d85133", 21793764, 34446.3517, 329401.426, 0.0709402325, 0.0351537779,
    ],
    "squeezenet1_0": [
        "07c7e695", "b6c24564", 737476, -138.286144, 50995.247, 0.0556656498, 0.039446713,
    ],
    "squeezenet1_1": [
        "ec3a6fdb", "514aa50a", 724548, -88.9982541, 49969.5988, 0.898175994, 0.3678374,
    ],
    "shufflenet_v2_x0_5": [
        "a2468ffa", "892701c5", 345892, 7976.08459, 24287.1467, 1.99562677, 0.833037093,
    ],
    "shufflenet_v2_x1_0": [
        "0e85fba4", "892701c5", 1257704, 16196.7627, 59387.9371, 0.120975135, 0.0478478508,
    ],
    "mnasnet0_5": [
        "875f5bc2", "578f4819", 942636, 20885.6605, 86769.9769, 104.066207, 47.2036185,
    ],
    "mnasnet1_3": [
        "050c1e9c", "578f4819", 5006380, 48572.7541, 302376.418, -4.59889531e-08, 2.53088382e-08,
    ],
    "regnet_x_400mf": [
        "96fa8303", "d8844a60", 5096580, 37680.7812, 306072.858, -4.11524999, 2.08081199,
    ],
    "regnet_y_400mf": [
        "ece64061", "7e3de5c8", 3904908, 27269.8306, 268098.538, -0.0356314754, 0.0264008876,
    ],
    "maxvit": [
        "1bed8f32", "4ff10f68", 24030, 1278.6469, 1630.30626, -0.0056628327, 0.00397694591,
    ],
    "maxvit, training": [
        "5cb3baab", "4ff10f68", 24030, 1278.6469, 1630.30626, -0.0412344156, 0.0195424763,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_facts(name: str) -> None:
    build, train = CASES[name]
    images = (wave(2, 3, 80, 80),) if "inception" in name else BATCH
    same(facts(build, *images, train=train), EXPECTED[name])


# https://docs.pytorch.org/vision/0.28/models.html: "Params" of the weights of each model
PARAMETERS = {
    "googlenet": 6_624_904, "inception_v3": 27_161_264, "squeezenet1_0": 1_248_424,
    "squeezenet1_1": 1_235_496, "shufflenet_v2_x1_5": 3_503_624, "shufflenet_v2_x2_0": 7_393_996,
    "mnasnet0_75": 3_170_208, "mnasnet1_0": 4_383_312, "regnet_x_800mf": 7_259_656,
    "regnet_x_1_6gf": 9_190_136, "regnet_x_3_2gf": 15_296_552, "regnet_x_8gf": 39_572_648,
    "regnet_x_16gf": 54_278_536, "regnet_x_32gf": 107_811_560, "regnet_y_800mf": 6_432_512,
    "regnet_y_1_6gf": 11_202_430, "regnet_y_3_2gf": 19_436_338, "regnet_y_8gf": 39_381_472,
    "regnet_y_16gf": 83_590_140, "regnet_y_32gf": 145_046_770, "regnet_y_128gf": 644_812_894,
    "maxvit_t": 30_919_624,
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name: str) -> None:
    kwargs = {}
    if name in ("googlenet", "inception_v3"):  # the weights of GoogLeNet came without its heads
        kwargs = {"init_weights": False, "aux_logits": name != "googlenet"}
    with torch.device("meta"):
        model = models.get_model(name, **kwargs)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]
    assert models.get_model_weights(name).DEFAULT.meta["num_params"] == PARAMETERS[name]


def test_heads_in_the_middle() -> None:
    model = models.googlenet(num_classes=2, init_weights=False).train()
    out = model(torch.zeros(2, 3, 64, 64))
    assert type(out) is GoogLeNetOutputs
    assert out._fields == ("logits", "aux_logits2", "aux_logits1")
    assert model.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 2)
    other = models.inception_v3(num_classes=2, init_weights=False).train()
    out = other(torch.zeros(2, 3, 299, 299))
    assert type(out) is inception.InceptionOutputs
    assert out._fields == ("logits", "aux_logits")
    without = GoogLeNet(num_classes=2, init_weights=False, aux_logits=False)
    assert without.aux1 is None
    assert not [k for k in without.state_dict() if "aux" in k]


def test_unsaid_initialization_warns() -> None:
    with torch.device("meta"), pytest.warns(FutureWarning, match="initialization of GoogleNet"):
        models.googlenet(blocks=None)
    with torch.device("meta"), pytest.warns(FutureWarning, match="of inception_v3 will be"):
        models.inception_v3()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.device("meta"):
            models.googlenet(init_weights=True)


def test_old_weights_of_mnasnet() -> None:
    model, state = mnasnet.MNASNet(0.5, 3), mnasnet.MNASNet(1.0, 3).state_dict()
    stem = tuple(f"layers.{i}." for i in range(8))
    first = {k: v for k, v in state.items() if k.startswith(stem)}
    rest = {k: v for k, v in model.state_dict().items() if k not in first}
    rest["layers.8.0.layers.0.weight"] = torch.zeros(48, 16, 1, 1)
    for i in (1, 4):
        for name in ("weight", "bias", "running_mean", "running_var"):
            rest[f"layers.8.0.layers.{i}.{name}"] = torch.ones(48)
    rest["layers.8.0.layers.3.weight"] = torch.zeros(48, 1, 3, 3)
    rest["layers.8.0.layers.6.weight"] = torch.zeros(16, 48, 1, 1)
    old: Any = type(state)({**first, **rest})
    old._metadata = {"": {"version": 1}}
    with pytest.warns(UserWarning, match="saved using the previous version"):
        model.load_state_dict(old)
    assert model.layers[0].weight.shape == (32, 3, 3, 3)
    assert model._version == 1


def test_what_does_not_fit() -> None:
    for make, match in (
        (lambda: models.SqueezeNet("1_2"), "Unsupported SqueezeNet version 1_2"),
        (lambda: shufflenetv2.InvertedResidual(3, 4, 1), "Invalid combination of stride 1"),
        (lambda: shufflenetv2.InvertedResidual(4, 4, 5), "illegal stride value"),
        (lambda: models.ShuffleNetV2([1], [1] * 5), "stages_repeats as list of 3"),
        (lambda: models.ShuffleNetV2([1] * 3, [1]), "stages_out_channels as list of 5"),
        (lambda: models.MNASNet(0.0), "alpha should be greater than 0.0 instead of 0.0"),
        (lambda: mnasnet._InvertedResidual(8, 8, 4, 1, 3), "kernel_size should be 3 or 5"),
        (lambda: mnasnet._InvertedResidual(8, 8, 3, 3, 3), "stride should be 1 or 2"),
        (lambda: GoogLeNet(blocks=[1], init_weights=False), "blocks length should be 3 instead"),
        (
            lambda: models.Inception3(inception_blocks=[1], init_weights=False),
            "length of inception_blocks should be 7 instead of 1",
        ),
        (
            lambda: regnet.BlockParams.from_init_params(16, 47, 27.89, 2.09, 8),
            "Invalid RegNet settings",
        ),
        (
            lambda: models.MaxVit((60, 64), 8, 7, [8, 16], [1, 2], 4, 0.1),
            r"Input size \(15, 16\) of block 0 is not divisible by partition size 7",
        ),
        (
            lambda: maxvit.RelativePositionalMultiHeadAttention(8, 3, 4),
            "feat_dim: 8 must be divisible by head_dim: 3",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            make()


def test_widths_of_regnet() -> None:
    # of torchvision's BlockParams.from_init_params
    params = regnet.BlockParams.from_init_params(22, 24, 24.48, 2.54, 16, 0.5)
    assert params.depths == [1, 2, 7, 12]
    assert params.widths == [24, 64, 160, 384]
    assert params.group_widths == [12, 16, 16, 16]


def test_all_models_are_listed() -> None:
    listed = models.list_models()
    assert len(listed) == 109
    assert {"maxvit_t", "fcn_resnet50", "ssd300_vgg16", "swin3d_t", "raft_small"} <= set(listed)
    assert models.list_models(models.optical_flow) == ["raft_large", "raft_small"]
    assert models.list_models(models.segmentation, include="fcn*") == [
        "fcn_resnet101",
        "fcn_resnet50",
    ]


def _files(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    """Let the weights of everything be those of `model`."""
    state = model.state_dict()
    monkeypatch.setattr(models.WeightsEnum, "get_state_dict", lambda *args, **kwargs: state)


def test_trained_weights_of_googlenet(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = models.googlenet(init_weights=False)
    _files(monkeypatch, whole)
    model = models.googlenet(weights="DEFAULT")
    assert (model.transform_input, model.aux_logits, model.aux1) == (True, False, None)
    torch.testing.assert_close(model.fc.weight, whole.fc.weight)
    with pytest.warns(UserWarning, match="heads in the pretrained googlenet model are NOT"):
        model = models.googlenet(weights=models.GoogLeNet_Weights.DEFAULT, aux_logits=True)
    assert model.aux1 is not None
    with pytest.raises(ValueError, match="'num_classes' expected value 1000 but got 3"):
        models.googlenet(weights="DEFAULT", num_classes=3)
    _files(monkeypatch, models.inception_v3(init_weights=False))
    other = models.inception_v3(weights="IMAGENET1K_V1", transform_input=False)
    assert (other.transform_input, other.aux_logits) == (False, True)
    with pytest.raises(ValueError, match="'aux_logits' expected value True but got False"):
        models.inception_v3(weights="IMAGENET1K_V1", aux_logits=False)


def test_trained_weights_of_models_on_backbones(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: dict[str, Any] = {"weights_backbone": None}
    whole = models.segmentation.lraspp_mobilenet_v3_large(**plain)
    _files(monkeypatch, whole)
    model = models.segmentation.lraspp_mobilenet_v3_large(weights="DEFAULT")
    torch.testing.assert_close(model.state_dict(), whole.state_dict())
    _files(monkeypatch, models.detection.ssdlite320_mobilenet_v3_large(**plain))
    detector = models.detection.ssdlite320_mobilenet_v3_large(weights="COCO_V1")
    assert detector.head.classification_head.num_columns == 91
    _files(monkeypatch, models.detection.retinanet_resnet50_fpn(**plain))
    detector = models.detection.retinanet_resnet50_fpn(weights="COCO_V1")
    norms = [m for m in detector.modules() if isinstance(m, ops.FrozenBatchNorm2d)]
    assert len(norms) == 53
    assert {m.eps for m in norms} == {0.0}
    frozen = {n.split(".")[2] for n, p in detector.named_parameters() if not p.requires_grad}
    assert frozen == {"conv1", "layer1"}
    _files(monkeypatch, models.optical_flow.raft_small())
    assert models.optical_flow.raft_small(weights="C_T_V1").mask_predictor is None
    kind = models.detection.KeypointRCNN_ResNet50_FPN_Weights
    assert kind.DEFAULT.meta["categories"] == ["no person", "person"]
    assert len(kind.COCO_LEGACY.meta["keypoint_names"]) == 17
