"""Detectors: their parts against values worked out by hand, their form, and that they learn."""

from __future__ import annotations

import math
from typing import Any

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.nn import functional as F
from torchlab.vision import models, ops
from torchlab.vision.models.detection import FasterRCNN, MaskRCNN
from torchlab.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
    overwrite_eps,
)
from torchlab.vision.models.detection.anchor_utils import AnchorGenerator
from torchlab.vision.models.detection.backbone_utils import (
    mobilenet_backbone,
    resnet_fpn_backbone,
)
from torchlab.vision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchlab.vision.models.detection.image_list import ImageList
from torchlab.vision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchlab.vision.models.detection.masks import paste_masks_in_image, project_masks_on_boxes
from torchlab.vision.models.detection.rpn import RPNHead
from torchlab.vision.models.detection.transform import GeneralizedRCNNTransform, resize_boxes
from torchlab.vision.ops.feature_pyramid_network import LastLevelMaxPool, LastLevelP6P7

close = torch.testing.assert_close


# --- deformable convolution


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution_without_offsets_is_a_convolution(masked: bool) -> None:
    x, w, b = torch.randn(2, 4, 8, 9), torch.randn(6, 2, 3, 2), torch.randn(6)
    facts: tuple[Any, ...] = ((2, 1), (1, 2), (1, 2))
    expected = F.conv2d(x, w, None, *facts, groups=2)
    shape = expected.shape[2:]
    mask = torch.full((2, 2 * 6, *shape), 0.5) if masked else None
    got = ops.deform_conv2d(x, torch.zeros(2, 24, *shape), w, b, *facts, mask=mask)
    factor = 0.5 if masked else 1.0
    close(got, expected * factor + b.reshape(1, -1, 1, 1), atol=1e-5, rtol=1e-5)


def test_an_integer_offset_moves_the_input() -> None:
    x, w = torch.randn(1, 2, 7, 7), torch.randn(3, 2, 3, 3)
    offset = torch.zeros(1, 18, 5, 5)
    offset[:, 0::2] = 1.0  # down
    offset[:, 1::2] = -2.0  # left
    moved = F.pad(x, (2, 0, 0, 1))[:, :, 1:, :7]
    close(ops.deform_conv2d(x, offset, w), F.conv2d(moved, w), atol=1e-5, rtol=1e-5)


def test_half_an_offset_is_the_mean_of_two_pixels() -> None:
    x = torch.tensor([[[[1.0, 3.0, 7.0]]]])
    offset = torch.zeros(1, 2, 1, 3)
    offset[:, 1] = 0.5
    got = ops.deform_conv2d(x, offset, torch.ones(1, 1, 1, 1))
    assert got.flatten().tolist() == [2.0, 5.0, 3.5]  # the last fades into the zeros outside


def test_gradients_of_deformable_convolution() -> None:
    torch.manual_seed(0)
    shapes = [(1, 2, 4, 4), (1, 8, 3, 3), (2, 2, 2, 2), (2,), (1, 4, 3, 3)]
    made = [torch.rand(s, dtype=torch.float64, requires_grad=True) for s in shapes]

    def run(*args: Any) -> Any:
        return ops.deform_conv2d(*args[:4], mask=args[4])

    assert torch.autograd.gradcheck(run, made)


def test_deformable_convolution_refuses_what_does_not_fit() -> None:
    x, w = torch.zeros(1, 2, 5, 5), torch.zeros(2, 2, 3, 3)
    with pytest.raises(RuntimeError, match="multiple of"):
        ops.deform_conv2d(x, torch.zeros(1, 17, 3, 3), w)
    with pytest.raises(RuntimeError, match="offset is"):
        ops.deform_conv2d(x, torch.zeros(1, 18, 4, 3), w)
    with pytest.raises(RuntimeError, match="mask should be"):
        ops.deform_conv2d(x, torch.zeros(1, 18, 3, 3), w, mask=torch.zeros(1, 8, 3, 3))
    with pytest.raises(ValueError, match="in_channels"):
        ops.DeformConv2d(3, 4, 3, groups=2)


def test_deformable_layer() -> None:
    layer = ops.DeformConv2d(4, 6, 3, padding=2, groups=2, bias=False)
    assert list(layer.state_dict()) == ["weight"]
    assert repr(layer) == (
        "DeformConv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(2, 2), groups=2,"
        " bias=False)"
    )
    assert layer(torch.ones(1, 4, 5, 5), torch.zeros(1, 18, 7, 7)).shape == (1, 6, 7, 7)


# --- blocks, pyramids, pools


def test_drop_block_drops_squares_and_keeps_the_sum_of_the_factors() -> None:
    torch.manual_seed(0)
    x = torch.ones(4, 3, 20, 20)
    out = ops.drop_block2d(x, 0.2, 3)
    zero = out == 0
    assert 0.1 < zero.float().mean().item() < 0.3
    assert out.sum().item() == pytest.approx(x.numel(), rel=1e-5)
    # every dropped pixel lies in a square of 3 x 3 that is dropped in full
    full = -F.max_pool2d(-zero.float(), 3, 1)
    again = F.max_pool2d(F.pad(full, [1] * 4), 3, 1, 1)
    assert torch.equal(again > 0, zero)


def test_drop_block_in_other_cases() -> None:
    x = torch.ones(1, 1, 5, 5)
    assert ops.drop_block2d(x, 0.5, 3, training=False) is x
    assert ops.DropBlock2d(0.5, 3).eval()(x) is x
    assert ops.drop_block3d(torch.ones(1, 1, 5, 5, 5), 0.1, 3).shape == (1, 1, 5, 5, 5)
    assert repr(ops.DropBlock3d(0.1, 3)) == "DropBlock3d(p=0.1, block_size=3, inplace=False)"
    for p, shape, size in ((1.5, (1, 1, 5, 5), 3), (0.5, (1, 5, 5), 3), (0.5, (1, 1, 5, 5), 2)):
        with pytest.raises(ValueError, match=r"probability|dimensional|odd"):
            ops.drop_block2d(torch.ones(shape), p, size)


def test_pyramid_adds_the_coarse_to_the_fine() -> None:
    fpn = ops.FeaturePyramidNetwork([1, 1], 1, LastLevelMaxPool())
    for p in fpn.parameters():
        p.data.zero_()
    for block in fpn.inner_blocks:
        block[0].weight.data.fill_(2.0)
    for block in fpn.layer_blocks:
        block[0].weight.data[0, 0, 1, 1] = 1.0
    fine, coarse = torch.rand(1, 1, 4, 4), torch.rand(1, 1, 2, 2)
    out = fpn({"a": fine, "b": coarse})
    assert list(out) == ["a", "b", "pool"]
    close(out["a"], 2 * fine + 2 * coarse.repeat_interleave(2, 2).repeat_interleave(2, 3))
    close(out["b"], 2 * coarse)
    close(out["pool"], 2 * coarse[:, :, ::2, ::2])


def test_pyramid_loads_names_of_before_version_2() -> None:
    fpn = ops.FeaturePyramidNetwork([2, 3], 4)
    old = {k.replace(".0.weight", ".weight").replace(".0.bias", ".bias"): v
           for k, v in fpn.state_dict().items()}  # fmt: skip
    assert "inner_blocks.1.weight" in old
    other = ops.FeaturePyramidNetwork([2, 3], 4)
    other.load_state_dict(old)
    close(other.layer_blocks[1][0].weight, fpn.layer_blocks[1][0].weight)


def test_two_convolved_levels() -> None:
    last = LastLevelP6P7(3, 4)
    p, c = [torch.rand(1, 4, 8, 8)], [torch.rand(1, 3, 8, 8)]
    made, names = last(p, c, ["x"])
    assert names == ["x", "p6", "p7"]
    assert [tuple(m.shape) for m in made[1:]] == [(1, 4, 4, 4), (1, 4, 2, 2)]
    close(made[1], last.p6(c[0]))
    close(made[2], last.p7(made[1].relu()))


def test_boxes_are_pooled_from_the_level_of_their_size() -> None:
    maps = {str(i): torch.full((1, 1, 256 // 2**i, 256 // 2**i), float(i)) for i in range(3)}
    pool = ops.MultiScaleRoIAlign(["0", "1", "2"], 2, 2, canonical_scale=64, canonical_level=1)
    boxes = torch.tensor(
        [[0, 0, 64, 64], [0, 0, 63, 63], [0, 0, 128, 128], [0, 0, 250, 250], [0, 0, 8, 8.0]]
    )
    out = pool(maps, [boxes], [(256, 256)])
    assert out[:, 0, 0, 0].tolist() == [1.0, 0.0, 2.0, 2.0, 0.0]
    assert pool.scales == [1.0, 0.5, 0.25]
    expected = (
        "MultiScaleRoIAlign(featmap_names=['0', '1', '2'], output_size=(2, 2), sampling_ratio=2)"
    )
    assert repr(pool) == expected


# --- anchors, codes, matches, samples


def test_anchors_by_hand() -> None:
    make = AnchorGenerator(((16, 32),), ((0.25, 1.0),))
    assert make.num_anchors_per_location() == [4]
    # ratio 1/4: twice as wide, half as high
    cell = [[-16, -4, 16, 4], [-32, -8, 32, 8], [-8, -8, 8, 8], [-16, -16, 16, 16]]
    assert make.cell_anchors[0].tolist() == cell
    images = ImageList(torch.zeros(2, 3, 20, 30), [(20, 30), (18, 30)])
    anchors = make(images, [torch.zeros(2, 5, 2, 3)])
    assert len(anchors) == 2
    assert anchors[1].shape == (2 * 3 * 4, 4)
    assert anchors[0][4 * 1].tolist() == [10 - 16, -4, 10 + 16, 4]  # second pixel of the first row
    assert anchors[0][4 * 3 + 2].tolist() == [-8, 10 - 8, 8, 10 + 8]  # first of the second row
    with pytest.raises(AssertionError, match="feature map"):
        make(images, [torch.zeros(2, 5, 2, 3)] * 2)


def test_codes_by_hand() -> None:
    coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
    anchor = torch.tensor([[0.0, 0.0, 10.0, 20.0]])
    box = torch.tensor([[2.0, 5.0, 22.0, 15.0]])  # centre (12, 10), 20 x 10
    code = coder.encode([box], [anchor])[0]
    expected = [10 * (12 - 5) / 10, 10 * (10 - 10) / 20, 5 * math.log(2), 5 * math.log(0.5)]
    close(code, torch.tensor([expected]))
    both = torch.cat([code, torch.zeros(1, 4)], 1)
    close(coder.decode(both, [anchor]), torch.stack([box, anchor], 1), atol=1e-5, rtol=1e-5)
    wild = coder.decode(torch.tensor([[0.0, 0.0, 1e6, 0.0]]), [anchor])
    assert (wild[0, 0, 2] - wild[0, 0, 0]).item() == pytest.approx(10 * 1000 / 16)
    assert coder.decode(torch.zeros(0, 8), [torch.zeros(0, 4)]).shape == (0, 2, 4)


def test_matches_by_hand() -> None:
    quality = torch.tensor([[0.9, 0.5, 0.1, 0.2], [0.3, 0.4, 0.0, 0.2]])
    assert Matcher(0.7, 0.3)(quality).tolist() == [0, -2, -1, -1]
    # the second box's best prediction is number 1, whose own best match is the first box
    assert Matcher(0.7, 0.3, True)(quality).tolist() == [0, 0, -1, -1]
    with pytest.raises(ValueError, match="ground-truth"):
        Matcher(0.7, 0.3)(torch.zeros(0, 3))
    with pytest.raises(ValueError, match="proposal"):
        Matcher(0.7, 0.3)(torch.zeros(3, 0))
    with pytest.raises(AssertionError, match="low_threshold"):
        Matcher(0.3, 0.7)


def test_samples_are_balanced() -> None:
    labels = torch.tensor([1.0] * 10 + [0.0] * 30 + [-1.0] * 10)
    (positive,), (negative,) = BalancedPositiveNegativeSampler(16, 0.25)([labels])
    assert positive.dtype == torch.uint8
    assert (int(positive.sum()), int(negative.sum())) == (4, 12)
    assert not positive[10:].any()
    assert not negative[:10].any()
    assert not negative[40:].any()
    (positive,), (negative,) = BalancedPositiveNegativeSampler(16, 0.25)([labels[9:]])
    assert (int(positive.sum()), int(negative.sum())) == (1, 15)


# --- images and masks on the way in and out


def test_transform_sizes_and_padding() -> None:
    change = GeneralizedRCNNTransform(40, 60, [0.5] * 3, [0.25] * 3).eval()
    wide, tall = torch.ones(3, 20, 40), torch.ones(3, 30, 20)
    target = {"boxes": torch.tensor([[1.0, 2.0, 10.0, 8.0]]), "masks": torch.ones(1, 20, 40).byte()}
    other = {"boxes": torch.zeros(0, 4)}
    batch, targets = change([wide, tall], [target, other])
    # the larger side of the first would be 80; the second is 40 wide and 60 high
    assert batch.image_sizes == [(30, 60), (60, 40)]
    assert batch.tensors.shape == (2, 3, 64, 64)
    assert (batch.tensors[0, :, :30, :60] == 2.0).all()
    assert (batch.tensors[0, :, 30:] == 0.0).all()
    close(targets[0]["boxes"], torch.tensor([[1.5, 3.0, 15.0, 12.0]]))
    assert targets[0]["masks"].shape == (1, 30, 60)
    assert target["boxes"][0, 0] == 1.0  # the caller's dictionary stays
    back = change.postprocess([{"boxes": targets[0]["boxes"]}], [(30, 60)], [(20, 40)])
    close(back[0]["boxes"], target["boxes"])
    close(resize_boxes(target["boxes"], (20, 40), (30, 60)), targets[0]["boxes"])
    with pytest.raises(TypeError, match="floating type"):
        change([torch.zeros(3, 4, 4, dtype=torch.uint8)])
    with pytest.raises(ValueError, match="3d tensors"):
        change([torch.zeros(4, 4)])


def test_masks_into_images_and_boxes() -> None:
    whole = paste_masks_in_image(torch.ones(1, 1, 8, 8), torch.tensor([[4.0, 6, 12, 14]]), (20, 24))
    assert whole.shape == (1, 1, 20, 24)
    assert (whole[0, 0, 7:13, 5:11] == 1).all()
    assert whole[0, 0, :4].sum() == 0
    assert whole[0, 0, :, 15:].sum() == 0
    outside = paste_masks_in_image(
        torch.ones(1, 1, 8, 8), torch.tensor([[40.0, 6, 52, 14]]), (9, 9)
    )
    assert outside.sum() == 0
    assert paste_masks_in_image(torch.ones(0, 1, 8, 8), torch.zeros(0, 4), (5, 6)).shape == (
        0,
        1,
        5,
        6,
    )
    masks = torch.zeros(2, 16, 16)
    masks[1, 8:] = 1
    seen = project_masks_on_boxes(masks, torch.tensor([[0.0, 0, 16, 16]]), torch.tensor([1]), 4)
    # rows are sampled at 4.5, 5.5, 6.5 and 7.5; the last lies between 0 and 1
    assert seen[0, :, 0].tolist() == [0.0, 0.125, 1.0, 1.0]


# --- whole models


def _tiny(mask: bool) -> Any:
    """A detector on one map at an eighth of the image."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for i, o in ((3, 8), (8, 16), (16, 16)):
        layers += [nn.Conv2d(i, o, 3, 2, 1), nn.ReLU()]
    backbone: Any = nn.Sequential(*layers)
    backbone.out_channels = 16
    facts: dict[str, Any] = {
        "min_size": 64, "max_size": 64, "box_score_thresh": 0.01, "box_detections_per_img": 7,
        "rpn_anchor_generator": AnchorGenerator(((16, 32),), ((1.0,),)),
        "box_roi_pool": ops.MultiScaleRoIAlign(["0"], 4, 2),
        "box_head": TwoMLPHead(16 * 16, 32),
        "box_predictor": FastRCNNPredictor(32, 3),
        "rpn_post_nms_top_n_train": 32, "rpn_post_nms_top_n_test": 20,
        "box_batch_size_per_image": 16,
    }  # fmt: skip
    if not mask:
        return FasterRCNN(backbone, **facts)
    return MaskRCNN(
        backbone, mask_roi_pool=ops.MultiScaleRoIAlign(["0"], 6, 2),
        mask_head=MaskRCNNHeads(16, (16,), 1), mask_predictor=MaskRCNNPredictor(16, 8, 3), **facts,
    )  # fmt: skip


def _data() -> tuple[list[Any], list[dict[str, Any]]]:
    """Two images of other sizes, with a bright square and a bright bar."""
    images, targets = [], []
    for (h, w), (x1, y1, x2, y2), label in (
        ((64, 64), (10, 12, 40, 42), 1), ((48, 64), (20, 8, 52, 24), 2),
    ):  # fmt: skip
        image, mask = torch.zeros(3, h, w), torch.zeros(1, h, w, dtype=torch.uint8)
        image[:, y1:y2, x1:x2] = 1.0
        mask[:, y1:y2, x1:x2] = 1
        box = torch.tensor([[x1, y1, x2, y2]], dtype=torch.float32)
        images.append(image)
        targets.append({"boxes": box, "labels": torch.tensor([label]), "masks": mask})
    return images, targets


def _trained(mask: bool, steps: int) -> tuple[Any, list[float]]:
    """A detector after `steps` steps on `_data`, and the sum of its losses at each."""
    model = _tiny(mask).train()
    images, targets = _data()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    totals = []
    for step in range(steps):
        losses = model(images, targets)
        names = ["loss_box_reg", "loss_classifier", "loss_objectness", "loss_rpn_box_reg"]
        assert sorted(losses) == sorted([*names, "loss_mask"] if mask else names)
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        if step == 0:
            assert not [n for n, p in model.named_parameters() if p.grad is None]
        optimizer.step()
        rates.step()
        totals.append(float(total.detach()))
    return model.eval(), totals


def _check_form(model: Any, mask: bool) -> list[dict[str, Any]]:
    """The predictions for `_data`, which have the documented form."""
    images, _ = _data()
    with torch.no_grad():
        found = model(images)
    assert len(found) == len(images)
    for image, result in zip(images, found, strict=True):
        n = result["scores"].shape[0]
        h, w = image.shape[1:]
        assert 0 < n <= 7
        assert list(result) == ["boxes", "labels", "scores"] + ["masks"] * mask
        assert result["boxes"].shape == (n, 4)
        assert (result["boxes"] >= 0).all()
        assert (result["boxes"] <= torch.tensor([w, h, w, h])).all()
        assert result["labels"].dtype == torch.int64
        assert ((result["labels"] == 1) | (result["labels"] == 2)).all()  # never the background
        assert result["scores"].tolist() == sorted(result["scores"].tolist(), reverse=True)
        if mask:
            assert result["masks"].shape == (n, 1, h, w)
            assert ((result["masks"] >= 0) & (result["masks"] <= 1)).all()
            assert result["masks"].max() > 0
    return found


def test_faster_rcnn_learns_where_the_objects_are() -> None:
    model, totals = _trained(False, 60)
    assert totals[1] < totals[0]
    assert sum(totals[-5:]) / 5 < 0.5 * totals[0]
    for result, target in zip(_check_form(model, False), _data()[1], strict=True):
        assert result["labels"][0] == target["labels"][0]
        assert ops.box_iou(result["boxes"][:1], target["boxes"]).item() > 0.5


def test_mask_rcnn_learns() -> None:
    model, totals = _trained(True, 15)
    assert totals[1] < totals[0]
    assert sum(totals[-3:]) / 3 < 0.75 * totals[0]
    _check_form(model, True)


def test_images_without_objects_or_detections() -> None:
    model = _tiny(False)
    empty = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}
    losses = model.train()([torch.rand(3, 64, 64)], [empty])
    assert float(losses["loss_box_reg"].detach()) == 0.0
    assert float(losses["loss_rpn_box_reg"].detach()) == 0.0
    sum(losses.values()).backward()
    model.roi_heads.score_thresh = 2.0
    (result,) = model.eval()([torch.rand(3, 64, 64)])
    assert result["boxes"].shape == (0, 4)
    assert result["labels"].shape == result["scores"].shape == (0,)


def test_wrong_targets() -> None:
    model, image = _tiny(False).train(), [torch.rand(3, 64, 64)]
    label, box = torch.tensor([1]), torch.tensor([[1.0, 1, 20, 20]])
    with pytest.raises(AssertionError, match="none when in training"):
        model(image)
    with pytest.raises(AssertionError, match="shape"):
        model(image, [{"boxes": torch.zeros(4), "labels": label}])
    with pytest.raises(AssertionError, match="positive height and width"):
        model(image, [{"boxes": torch.ones(1, 4), "labels": label}])
    with pytest.raises(TypeError, match="int64"):
        model(image, [{"boxes": box, "labels": torch.tensor([1.0])}])
    with pytest.raises(ValueError, match="masks key"):
        _tiny(True).train()(image, [{"boxes": box, "labels": label}])


def test_wrong_parts() -> None:
    backbone = _tiny(False).backbone
    for args, facts in (
        ((nn.ReLU(), 3), {}), ((backbone,), {}), ((backbone, 3), {"box_predictor": nn.ReLU()}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"out_channels|num_classes"):
            FasterRCNN(*args, **facts)
    with pytest.raises(TypeError, match="AnchorGenerator"):
        FasterRCNN(backbone, 3, rpn_anchor_generator=3)


# https://docs.pytorch.org/vision/0.28/models.html#object-detection: "Params" of the weights
PARAMETERS = {
    "fasterrcnn_resnet50_fpn": 41_755_286,
    "fasterrcnn_resnet50_fpn_v2": 43_712_278,
    "fasterrcnn_mobilenet_v3_large_fpn": 19_386_354,
    "fasterrcnn_mobilenet_v3_large_320_fpn": 19_386_354,
    "maskrcnn_resnet50_fpn": 44_401_393,
    "maskrcnn_resnet50_fpn_v2": 46_359_409,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = models.get_model(name, weights_backbone=None)
    own = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    learned = sum(p.numel() for p in model.parameters())
    frozen = 0  # the documented numbers leave out the normalization that the weights had frozen
    if not name.endswith("v2"):
        parts = model.backbone.body.modules()
        frozen = sum(2 * m.weight.numel() for m in parts if isinstance(m, nn.BatchNorm2d))
    assert learned - frozen == PARAMETERS[name]
    assert "rpn.head.conv.0.0.weight" in own
    assert "roi_heads.box_predictor.cls_score.weight" in own


def test_backbones_freeze_all_but_the_last_parts() -> None:
    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=2)
    trained = {n.split(".")[1] for n, p in backbone.body.named_parameters() if p.requires_grad}
    learned = {n.split(".")[0] for n, p in backbone.body.named_parameters() if p.requires_grad}
    assert learned == {"layer3", "layer4"}, trained
    out = backbone.eval()(torch.zeros(1, 3, 64, 64))
    shapes = {k: tuple(v.shape[1:]) for k, v in out.items()}
    sides = {"0": 16, "1": 8, "2": 4, "3": 2, "pool": 1}
    assert shapes == {k: (256, s, s) for k, s in sides.items()}
    overwrite_eps(backbone, 0.0)
    assert backbone.body.bn1.eps == 0.0
    with pytest.raises(ValueError, match="range"):
        resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=6)


def test_mobilenet_backbones() -> None:
    facts: dict[str, Any] = {"backbone_name": "mobilenet_v3_small", "weights": None}
    plain = mobilenet_backbone(fpn=False, **facts).eval()
    assert plain(torch.zeros(1, 3, 64, 64)).shape == (1, 256, 2, 2)
    assert plain.out_channels == 256
    pyramid = mobilenet_backbone(fpn=True, **facts).eval()
    assert list(pyramid(torch.zeros(1, 3, 64, 64))) == ["0", "1", "pool"]


def test_head_loads_names_of_before_version_2() -> None:
    head, other = RPNHead(4, 2), RPNHead(4, 2)
    old = {k.replace("conv.0.0", "conv"): v for k, v in head.state_dict().items()}
    assert "conv.weight" in old
    other.load_state_dict(old)
    close(other.conv[0][0].weight, head.conv[0][0].weight)
