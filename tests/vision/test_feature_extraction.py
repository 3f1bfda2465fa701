"""What is in the middle of models. The names of nodes are torchvision's."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.vision import models
from torchlab.vision.models.feature_extraction import (
    create_feature_extractor,
    get_graph_node_names,
)


class Two(nn.Module):
    """Not the same in training and in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.d, self.b = nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        x = self.a(x)
        x = self.d(x).relu() if self.training else x.tanh() + 1
        return self.b(x)


def test_names_of_resnet() -> None:
    train, evaluation = get_graph_node_names(models.resnet18())
    assert train == evaluation
    assert train[:12] == [
        "x", "conv1", "bn1", "relu", "maxpool", "layer1.0.conv1", "layer1.0.bn1",
        "layer1.0.relu", "layer1.0.conv2", "layer1.0.bn2", "layer1.0.add", "layer1.0.relu_1",
    ]  # fmt: skip
    assert train[24:26] == ["layer2.0.downsample.0", "layer2.0.downsample.1"]
    assert train[-3:] == ["avgpool", "flatten", "fc"]


def test_modules_of_ops_are_whole() -> None:
    _, names = get_graph_node_names(models.mobilenet_v3_small())
    assert names[:9] == [
        "x", "features.0", "features.1.block.0", "features.1.block.1", "features.1.block.2",
        "features.2.block.0", "features.2.block.1", "features.2.block.2", "features.3.block.0",
    ]  # fmt: skip
    _, names = get_graph_node_names(
        models.resnet18(), {"leaf_modules": [models.resnet.BasicBlock]}
    )
    assert names[4:7] == ["maxpool", "layer1.0", "layer1.1"]


def test_features() -> None:
    torch.manual_seed(0)
    model = models.resnet18().eval()
    body = create_feature_extractor(model, {"layer1": "a", "layer3": "b", "layer1.0.conv1": "c"})
    x = torch.rand(2, 3, 64, 64)
    out = body(x)
    assert type(out) is dict
    assert list(out) == ["c", "a", "b"]
    low = model.layer1(model.maxpool(model.relu(model.bn1(model.conv1(x)))))
    torch.testing.assert_close(out["a"], low)
    torch.testing.assert_close(out["b"], model.layer3(model.layer2(low)))
    assert type(body).__name__ == "ResNet"
    assert not body.training
    names = {n.partition(".")[0] for n, _ in body.named_parameters()}
    assert names == {"conv1", "bn1", "layer1", "layer2", "layer3"}  # what comes later is left out
    out["b"].sum().backward()
    assert model.conv1.weight.grad is not None
    torch.testing.assert_close(copy.deepcopy(body)(x)["a"], low)
    listed = create_feature_extractor(model, ["layer2.1.add", "fc"])
    assert {k: tuple(v.shape) for k, v in listed(x).items()} == {
        "layer2.1.add": (2, 128, 8, 8),
        "fc": (2, 1000),
    }


def test_modes_that_differ() -> None:
    model = Two()
    with pytest.warns(UserWarning, match="in train mode are different to those obtained in eval"):
        names = get_graph_node_names(model)
    assert names == (["x", "a", "d", "relu", "b"], ["x", "a", "tanh", "add", "b"])
    assert model.training
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = create_feature_extractor(
            model, train_return_nodes={"relu": "r"}, eval_return_nodes={"tanh": "t"},
            suppress_diff_warning=True,
        )  # fmt: skip
    x = torch.ones(1, 4)
    assert both.training
    assert [list(both.train()(x)), list(both.eval()(x)), list(both.train()(x))] == [
        ["r"],
        ["t"],
        ["r"],
    ]
    with pytest.warns(UserWarning, match="eval mode are a subsequence of those obtained in train"):
        get_graph_node_names(models.googlenet(init_weights=False))


def test_what_does_not_fit() -> None:
    model: Any = Two().eval()
    for nodes, match in (
        ({}, "Either `return_nodes` or"),
        ({"train_return_nodes": ["b"]}, "If any of `train_return_nodes` and"),
        (
            {"return_nodes": ["b"], "train_return_nodes": ["b"], "eval_return_nodes": ["b"]},
            "If `train_return_nodes` and",
        ),
        ({"return_nodes": ["tanh"]}, "node: 'tanh' is not present in model. Hint"),
    ):
        with pytest.raises(ValueError, match=match):
            create_feature_extractor(model, **nodes)
    assert not model.training
