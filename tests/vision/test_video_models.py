"""Classifiers of videos and models of motion against what torchvision gave for the same seed."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab as torch
from tests.vision.model_facts import facts, numbers, same, wave, weights
from torchlab.vision import models
from torchlab.vision.models.optical_flow import _utils as flow
from torchlab.vision.models.optical_flow import raft, raft_large, raft_small
from torchlab.vision.models.video import MViT, SwinTransformer3d, VideoResNet, mvit, s3d
from torchlab.vision.models.video import resnet as video_resnet
from torchlab.vision.models.video import swin_transformer as video_swin


def _resnet(block: Any, *convolutions: Any) -> Any:
    stem = video_resnet.BasicStem if len(convolutions) == 2 else video_resnet.R2Plus1dStem
    first, rest = convolutions[0], convolutions[-1]
    return VideoResNet(block, [first, rest, rest, rest], [1, 1, 1, 1], stem, num_classes=3)


def _mvit(v2: bool, with_class: bool = False) -> Any:
    make = mvit.MSBlockConfig
    three, same_size, half = [3, 3, 3], [1, 1, 1], [1, 2, 2]
    blocks = [
        make(1, 8, 16, [], three, [], half), make(2, 16, 16, three, three, half, same_size),
    ]  # fmt: skip
    if v2:
        blocks = [
            make(1, 8, 8, three, three, same_size, half),
            make(2, 8, 16, three, three, half, same_size),
        ]
    return MViT(
        (32, 48), 4, blocks, v2, with_class, v2, v2, num_classes=3, stochastic_depth_prob=0.3,
        attention_dropout=0.1 if with_class else 0.0,
    )  # fmt: skip


_B, _N = video_resnet.BasicBlock, video_resnet.Bottleneck
_3D, _2D, _21 = (
    video_resnet.Conv3DSimple, video_resnet.Conv3DNoTemporal, video_resnet.Conv2Plus1D,
)  # fmt: skip
CASES: dict[str, Any] = {
    "r3d": (lambda: _resnet(_B, _3D, _3D), True),
    "mc3": (lambda: _resnet(_B, _3D, _2D), False),
    "r2plus1d": (lambda: _resnet(_N, _21), False),
    "mvit": (lambda: _mvit(False), True),
    "mvit v2": (lambda: _mvit(True), False),
    "mvit v2, with the class": (lambda: _mvit(True, True), True),
    "swin3d": (
        lambda: SwinTransformer3d([2, 4, 4], 8, [2, 2], [2, 4], [2, 3, 3], num_classes=3), True,
    ),
    "swin3d, long windows": (
        lambda: SwinTransformer3d([2, 4, 4], 8, [2, 2], [2, 4], [8, 7, 7], num_classes=3), False,
    ),
}  # fmt: skip
BATCH = (wave(2, 3, 4, 32, 48),)
EXPECTED: dict[str, list[Any]] = {
    "r3d": [
        "9aa8b63a", "debc4acb", 14363331, 5738.01603, 172447.625, 0.184064319, 0.257428204,
    ],
    "mc3": [
        "c4ad0fe5", "debc4acb", 5073603, 5709.00532, 108712.641, -0.0374133983, 0.052982063,
    ],
    "r2plus1d": [
        "c30a33f3", "59561d28", 15622290, 24237.4047, 366544.192, 0.0626837617, 0.0312550653,
    ],
    "mvit": [
        "822c92ca", "f4891a16", 10139, 103.400735, 373.972153, -0.382827276, 0.220212067,
    ],
    "mvit v2": [
        "42ceea15", "9409628b", 9699, 104.41726, 384.429651, 0.0669189623, 0.241894424,
    ],
    "mvit v2, with the class": [
        "1adf4b80", "9409628b", 9699, 104.41726, 384.429651, 0.160043278, 0.13137484,
    ],
    "swin3d": [
        "7e7d5bce", "eb93984f", 10655, 48100.4388, 48289.6181, 0.0321121139, 0.0269237303,
    ],
    "swin3d, long windows": [
        "7e7d5bce", "eb93984f", 40175, 778769302, 778769963, 0.0537191574, 0.0313901609,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_facts(name: str) -> None:
    build, train = CASES[name]
    same(facts(build, *BATCH, train=train), EXPECTED[name])


# https://docs.pytorch.org/vision/0.28/models.html#video-classification: "Params" of the weights
PARAMETERS = {
    "r3d_18": 33_371_472, "mc3_18": 11_695_440, "r2plus1d_18": 31_505_325, "s3d": 8_320_048,
    "mvit_v1_b": 36_610_672, "mvit_v2_s": 34_537_744, "swin3d_t": 28_158_070,
    "swin3d_s": 49_816_678, "swin3d_b": 88_048_984, "raft_large": 5_257_536, "raft_small": 990_162,
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = models.get_model(name)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]
    assert models.get_model_weights(name).DEFAULT.meta["num_params"] == PARAMETERS[name]


def test_s3d() -> None:
    torch.manual_seed(0)
    model = s3d(num_classes=3)
    # of torchvision, the same seed
    same(weights(model), S3D)
    model.avgpool = torch.nn.AvgPool3d((1, 1, 1))  # which needs 14 images of 224×224
    with torch.no_grad():
        out = model.double().eval()(wave(1, 3, 8, 32, 32))
    assert numbers(out) == pytest.approx(S3D_OUT, rel=1e-6)


S3D: list[Any] = [
    "fde9ab91", "e5a2bc07", 7913123, 21247.8616, 160541.773,
]  # fmt: skip
S3D_OUT: list[float] = [0.0302747597, 0.0279309436]


def test_videos_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="Unsupported input dimension"):
        _mvit(True)(torch.rand(4, 32, 48))
    with pytest.raises(ValueError, match="can't be empty"):
        MViT((32, 32), 4, [], False, False, False, False)
    with pytest.raises(ValueError, match="of length 2"):
        video_swin.ShiftedWindowAttention3d(8, [1, 2], [1, 2, 3], 2)


def test_a_trace_keeps_what_looks_at_sizes() -> None:
    model = CASES["swin3d"][0]().eval()
    traced = torch.fx.symbolic_trace(model)
    for shape in ((1, 3, 4, 32, 48), (1, 3, 2, 20, 24)):
        video = torch.rand(shape)
        torch.testing.assert_close(traced(video), model(video))


def test_shortcuts_that_begin_at_zero() -> None:
    model = VideoResNet(
        _N, [_3D] * 4, [1, 1, 1, 1], video_resnet.BasicStem, 3, zero_init_residual=True
    )
    assert float(model.layer1[0].conv3[1].weight.detach().abs().sum()) == 0.0


# --- optical flow


def test_grids_by_hand() -> None:
    grid = flow.make_coords_grid(2, 2, 3)
    assert grid.shape == (2, 2, 2, 3)
    assert grid[1, :, 1, 2].tolist() == [2.0, 1.0]
    image = torch.arange(6.0).reshape(1, 1, 2, 3)
    at = torch.tensor([[[[1.0, 0.0], [1.5, 1.0]]]])
    assert flow.grid_sample(image, at, align_corners=True).flatten().tolist() == [1.0, 4.5]
    row = torch.arange(3.0).reshape(1, 1, 1, 3)
    at = torch.tensor([[[[2.0, 0.0]]]])
    assert flow.grid_sample(row, at, align_corners=True).item() == 2.0
    ones = torch.ones(1, 2, 3, 4)
    assert (flow.upsample_flow(ones) == 8.0).all()
    mask = torch.zeros(1, 9 * 4, 3, 4)
    mask.reshape(1, 9, 4, 3, 4)[:, 4] = 100.0  # of the neighbours, the pixel itself
    torch.testing.assert_close(flow.upsample_flow(ones, mask, 2), torch.full((1, 2, 6, 8), 2.0))


@pytest.mark.parametrize("name", ["raft_small", "raft_large"])
def test_raft(name: str) -> None:
    torch.manual_seed(0)
    model = {"raft_small": raft_small, "raft_large": raft_large}[name]()
    made = weights(model)
    one, two = wave(1, 3, 128, 136).float(), wave(2, 3, 128, 136)[1:].float()
    with torch.no_grad():
        flows = model.eval()(one, two, num_flow_updates=2)
    assert type(flows) is list
    assert [tuple(f.shape) for f in flows] == [(1, 2, 128, 136)] * 2
    same(made + numbers(flows), RAFT[name], rel=1e-3)  # in float32


RAFT: dict[str, list[Any]] = {
    "raft_small": [
        "f1975264", "180f3b02", 990162, -31.6429686, 24054.3467, -7943.85218, 113.670258,
        -10661.7982, 182.601766,
    ],
    "raft_large": [
        "b136c1d1", "3cecfe7a", 5257536, 2900.36021, 127705.037, -4412.9082, 39.6365836,
        -4762.79797, 66.7449698,
    ],
}  # fmt: skip


def test_what_does_not_fit() -> None:
    zeros = torch.zeros
    with torch.device("meta"):
        model = raft_small()
    encode, memory = raft.MotionEncoder, raft.RecurrentBlock
    for call, match in (
        (lambda: model(zeros(1, 3, 8, 8), zeros(1, 3, 8, 16)), "should have the same shape"),
        (lambda: model(zeros(1, 3, 10, 8), zeros(1, 3, 10, 8)), "got 10 \\(h\\) and 8 \\(w\\)"),
        (
            lambda: raft.CorrBlock().build_pyramid(zeros(1, 3, 8, 8), zeros(1, 3, 8, 8)),
            "should be at least 16; got",
        ),
        (
            lambda: raft.CorrBlock().build_pyramid(zeros(1, 3, 8, 8), zeros(1, 4, 8, 8)),
            "should have the same shape",
        ),
        (lambda: raft.FeatureEncoder(layers=(1, 2)), "layers is 5, instead got 2"),
        (lambda: encode(in_channels_corr=3, corr_layers=(1, 2, 3)), "1 or 2, instead got 3"),
        (lambda: encode(in_channels_corr=3, flow_layers=(1,)), "is 2, instead got 1"),
        (
            lambda: memory(input_size=3, hidden_size=3, kernel_size=(3,), padding=(1, 1)),
            "same length as padding",
        ),
        (
            lambda: memory(input_size=3, hidden_size=3, kernel_size=(3,) * 3, padding=(1,) * 3),
            "either 1 or 2, instead got 3",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            call()
