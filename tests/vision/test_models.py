"""Models against the numbers of parameters that torchvision documents, and their behaviour."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
from torchlab.vision import models, ops

# https://docs.pytorch.org/vision/0.28/models.html: "Params" of the weights of each model
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg11": 132_863_336,
    "vgg16_bn": 138_365_992,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnext50_32x4d": 25_028_904,
    "wide_resnet50_2": 68_883_240,
    "densenet121": 7_978_856,
    "densenet169": 14_149_480,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032,
    "mobilenet_v3_small": 2_542_856,
    "efficientnet_b0": 5_288_548,
    "efficientnet_b3": 12_233_232,
    "efficientnet_v2_s": 21_458_488,
    "convnext_tiny": 28_589_128,
    "vit_b_16": 86_567_656,
    "vit_b_32": 88_224_232,
    "swin_t": 28_288_354,
    "swin_v2_t": 28_351_570,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = models.get_model(name)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "densenet121", "swin_t"])
def test_a_step_changes_every_parameter(name: str) -> None:
    torch.manual_seed(0)
    model = getattr(models, name)(num_classes=3)
    x = torch.randn(2, 3, 64, 64)
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([0, 2]))
    assert loss.item() == pytest.approx(math.log(3), abs=1.0)
    loss.backward()
    missing = [n for n, p in model.named_parameters() if p.grad is None]
    assert not missing


def test_names_of_a_state_dict() -> None:
    names = list(models.resnet18().state_dict())
    assert names[:3] == ["conv1.weight", "bn1.weight", "bn1.bias"]
    assert "layer2.0.downsample.0.weight" in names
    assert names[-1] == "fc.bias"
    assert len(names) == 122


def test_memory_efficient_densenet_gives_the_same_gradients() -> None:
    made = []
    for efficient in (False, True):
        torch.manual_seed(0)
        model = models.DenseNet(8, (2, 2), 16, num_classes=3, memory_efficient=efficient)
        x = torch.ones(1, 3, 32, 32, requires_grad=True)
        model.eval()(x).sum().backward()
        made.append(x.grad)
    torch.testing.assert_close(*made)


def test_intermediate_layers() -> None:
    from torchlab.vision.models._utils import IntermediateLayerGetter

    parts = IntermediateLayerGetter(models.resnet18().eval(), {"layer1": "a", "layer3": "b"})
    out = parts(torch.zeros(1, 3, 64, 64))
    assert {k: tuple(v.shape) for k, v in out.items()} == {
        "a": (1, 64, 16, 16),
        "b": (1, 256, 4, 4),
    }


def test_unknown_model() -> None:
    with pytest.raises(ValueError, match="Unknown model"):
        models.get_model("resnet19")


def test_list() -> None:
    assert models.list_models(include="resnet1*") == ["resnet101", "resnet152", "resnet18"]


def test_frozen_batch_norm_equals_batch_norm_in_eval() -> None:
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(3)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    frozen = ops.FrozenBatchNorm2d(3)
    frozen.load_state_dict(norm.state_dict())
    x = torch.randn(2, 3, 4, 4)
    torch.testing.assert_close(frozen(x), norm.eval()(x))
    assert not list(frozen.parameters())


def test_layers_of_vgg_from_a_list():
    from torchlab.vision.models import vgg

    made = vgg.make_layers([8, "M", 16], batch_norm=True)
    kinds = [type(m).__name__ for m in made]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "Conv2d", "BatchNorm2d", "ReLU"]
    assert made[4].weight.shape == (16, 8, 3, 3)
    assert [sum(w != "M" for w in vgg.cfgs[k]) for k in "ABDE"] == [8, 10, 13, 16]
