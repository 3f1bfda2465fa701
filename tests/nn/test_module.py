"""torchlab.nn.module, _traversal, _conversion: registration, look-up, mode, conversion, repr."""

from __future__ import annotations

import copy
import pickle

import pytest

import torchlab as torch
from torchlab import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("cache", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


def test_assignment_registers():
    m = Net()
    assert [n for n, _ in m.named_parameters()] == ["first.weight", "first.bias", "second.1.weight"]
    assert [n for n, _ in m.named_buffers()] == ["scale", "cache"]
    names = ["", "first", "second", "second.0", "second.1"]
    assert [n for n, _ in m.named_modules()] == names
    assert [n for n, _ in m.named_children()] == ["first", "second"]
    assert "first" not in vars(m) and "first" in dir(m)


def test_a_new_registration_replaces_the_old_one():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(torch.ones(2))
    assert list(m._parameters) == ["x"] and "x" not in vars(m)
    m.x = None
    assert m._parameters == {"x": None}
    m.y = nn.Buffer(torch.ones(1), persistent=False)
    assert list(m._buffers) == ["y"] and m._non_persistent_buffers_set == {"y"}
    m.y = nn.Linear(1, 1)
    assert not m._buffers and list(m._modules) == ["y"]
    del m.y
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'y'"):
        m.y  # noqa: B018


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: setattr(m.first, "weight", torch.ones(2)), TypeError, "as parameter 'weight'"),
        (lambda m: setattr(m, "first", 3), TypeError, "as child module 'first'"),
        (lambda m: setattr(m, "scale", 3), TypeError, "as buffer 'scale'"),
        (lambda m: m.register_buffer("first", None), KeyError, "attribute 'first' already exists"),
        (lambda m: m.register_buffer("a.b", None), KeyError, "t contain"),
        (lambda m: m.register_parameter("", None), KeyError, "t be empty string"),
        (
            lambda m: m.register_parameter("p", torch.ones(1)),
            TypeError,
            "torch.nn.Parameter or None",
        ),
        (lambda m: m.add_module("m", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module(3, nn.ReLU()), TypeError, "module name should be a string"),
        (lambda m: m.get_submodule("first.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("first"), AttributeError, "`first` is not an nn.Parameter"),
        (lambda m: m.get_buffer("first.weight"), AttributeError, "`weight` is not a buffer"),
        (lambda m: m.train(1), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.to(torch.int32), TypeError, "only accepts floating point or complex"),
        (lambda m: nn.Module()(1), NotImplementedError, r"\[Module\] is missing the required"),
        (lambda m: nn.Module(1), TypeError, "takes 1 positional argument but 2"),
        (lambda m: nn.Module(a=1), TypeError, "unexpected keyword argument 'a'"),
    ],
)
def test_what_is_refused_changes_nothing(act, error, text):
    m = Net()
    before = repr(m), list(m.state_dict()), m.training
    with pytest.raises(error, match=text):
        act(m)
    assert (repr(m), list(m.state_dict()), m.training) == before


def test_assignment_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self, value):
            self.x = value

    for value, what in (
        (nn.Parameter(torch.ones(1)), "parameters"),
        (nn.ReLU(), "module"),
        (nn.Buffer(torch.ones(1)), "buffer"),
    ):
        with pytest.raises(AttributeError, match=f"cannot assign {what} before Module.__init__"):
            Early(value)


def test_a_computed_tensor_is_no_parameter():
    p = nn.Parameter(torch.ones(2))
    moved = p * 2
    m = nn.Module()
    computed = torch.Tensor.as_subclass(moved, nn.Parameter)
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'w'"):
        m.w = computed
    assert not m._parameters


def test_look_up_by_path():
    m = Net()
    assert m.get_submodule("second.1") is m.second[1]
    assert m.get_submodule("") is m
    assert m.get_parameter("first.bias") is m.first.bias
    assert m.get_buffer("scale") is m.scale
    m.set_submodule("second.0", nn.Tanh())
    assert type(m.second[0]) is nn.Tanh


def test_shared_parameters_are_listed_once():
    layer = nn.Linear(1, 1)
    m = nn.Sequential(layer, nn.ReLU(), layer)
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias"]
    every = [n for n, _ in m.named_parameters(remove_duplicate=False)]
    assert every == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [n for n, _ in m.named_modules()] == ["", "0", "1"]


def test_mode_and_apply_reach_everything():
    m = Net()
    assert m.eval() is m and not m.second[0].training
    m.train()
    seen = []
    m.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_conversion_keeps_the_parameters():
    m = Net()
    w = m.first.weight
    m(torch.ones(1, 2)).sum().backward()
    assert m.double() is m
    assert m.first.weight is w and w.dtype is torch.float64 and w.grad.dtype is torch.float64
    assert m.scale.dtype is torch.float64
    assert m.to(torch.float16).first.bias.dtype is torch.float16
    m.to("meta")
    assert w.is_meta
    m.to_empty(device="cpu")
    assert not w.is_meta and w.shape == (3, 2)


def test_integers_are_not_converted():
    m = nn.BatchNorm1d(2).double()
    assert m.num_batches_tracked.dtype is torch.int64 and m.weight.dtype is torch.float64


def test_gradients_on_and_off():
    m = Net().requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    m.requires_grad_()
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.first.weight.grad.tolist() == [[0.0, 0.0]] * 3
    m.zero_grad()
    assert m.first.weight.grad is None


def test_repr():
    assert (
        repr(Net()) == "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Linear(in_features=3, out_features=1, bias=False)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent(copier):
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    c = copier(m)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert c[0].weight.tolist() == m[0].weight.tolist()
    assert c(x).tolist() == m(x).tolist()
    with torch.no_grad():
        c[0].weight.zero_()
    assert m[0].weight.abs().sum().item() > 0
    assert c[0].weight.requires_grad


def test_a_shared_parameter_stays_shared_in_a_copy():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    assert copy.deepcopy(m)[1].weight is not m[0].weight
    c = copy.deepcopy(m)
    assert c[1].weight is c[0].weight


def test_errors_name_the_module_once():
    m = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(4, 1)))
    with pytest.raises(RuntimeError) as caught:
        m(torch.ones(1, 2))
    where = "in module 1.0 (Linear(in_features=4, out_features=1, bias=True))"
    assert caught.value.__notes__ == [where]
    with pytest.raises(RuntimeError) as caught:
        m[0](torch.ones(1, 5))
    where = "in module Linear(in_features=2, out_features=3, bias=True)"
    assert caught.value.__notes__ == [where]
    pickle.dumps(caught.value)


def test_a_broken_extra_repr_does_not_hide_the_error():
    class Broken(nn.Linear):
        def extra_repr(self):
            raise KeyError("x")

    with pytest.raises(RuntimeError) as caught:
        Broken(2, 3)(torch.ones(1, 5))
    assert caught.value.__notes__ == ["in module Broken()"]


def test_to_nothing_changes_nothing() -> None:
    m = nn.Linear(1, 1)
    assert m.to() is m and m.weight.dtype == torch.float32


def test_arguments_of_to_are_read_by_themselves() -> None:
    parse = torch._C._nn._parse_to
    assert parse("cpu") == parse(device="cpu") == (torch.device("cpu"), None, False, None)
    assert parse() == parse(None) == (None, None, False, None)
    assert parse(torch.float64) == (None, torch.float64, False, None)
    assert parse(torch.ones(1).double()) == (torch.device("cpu"), torch.float64, False, None)
    assert parse(dtype=torch.half, non_blocking=True) == (None, torch.half, True, None)
    assert parse(memory_format=torch.channels_last)[3] == torch.channels_last
    assert torch._C._log_api_usage_once("a.b") is None
    assert type(torch.Tensor) is torch._C._TensorMeta
