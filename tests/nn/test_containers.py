"""torchlab.nn.containers and parameter_containers."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import torchlab as torch
from torchlab import nn


def kinds(modules):
    return [type(m).__name__ for m in modules]


def test_sequential_is_a_list_of_modules():
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert kinds(s) == ["ReLU", "Tanh"] and len(s) == 2 and type(s[-1]) is nn.Tanh
    s.append(nn.Sigmoid()).insert(0, nn.SiLU())
    s.extend([nn.Identity()])
    assert kinds(s) == ["SiLU", "ReLU", "Tanh", "Sigmoid", "Identity"]
    assert kinds(s[1:3]) == ["ReLU", "Tanh"] and type(s[1:3]) is nn.Sequential
    del s[0]
    assert list(s._modules) == ["0", "1", "2", "3"]
    s[0] = nn.GELU()
    assert type(s.pop(-1)) is nn.Identity and kinds(s) == ["GELU", "Tanh", "Sigmoid"]
    assert kinds(nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())) == ["ReLU", "Tanh"]
    assert len(nn.Sequential(nn.ReLU()) * 3) == 3


def test_sequential_computes_in_order_and_takes_names():
    s = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Softmax(dim=0)))
    assert s(torch.tensor([-1.0, -2.0])).tolist() == [0.5, 0.5]
    assert list(s._modules) == ["a", "b"] and type(s.a) is nn.ReLU


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda s: s[5], IndexError, "index 5 is out of range"),
        (lambda s: s + 3, ValueError, "add operator supports only objects of Sequential class"),
        (lambda s: nn.Sequential(3), TypeError, "int is not a Module subclass"),
        (lambda s: s.insert(9, nn.ReLU()), IndexError, "Index out of range: 9"),
        (lambda s: s * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda s: s * 2.0, TypeError, "unsupported operand"),
        (
            lambda s: nn.ModuleList(3),
            TypeError,
            "ModuleList.extend should be called with an iterable",
        ),
        (lambda s: nn.ModuleList([1]), TypeError, "int is not a Module subclass"),
        (lambda s: nn.ModuleDict(3), TypeError, "ModuleDict.update should be called"),
        (lambda s: nn.ModuleDict([("a",)]), ValueError, "has length 1; 2 is required"),
        (lambda s: nn.ParameterList(3), TypeError, "ParameterList.extend should be called"),
        (lambda s: nn.ParameterList([])[0], IndexError, "index 0 is out of range"),
        (lambda s: nn.ParameterList()(1), RuntimeError, "ParameterList should not be called"),
    ],
)
def test_what_is_refused(act, error, text):
    with pytest.raises(error, match=text):
        act(nn.Sequential(nn.ReLU()))


def test_module_list_repr_shows_equal_neighbours_once():
    m = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert (
        repr(m) == "ModuleList(\n"
        "  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): ReLU()\n)"
    )
    m.insert(1, nn.Tanh())
    assert kinds(m) == ["Linear", "Tanh", "Linear", "ReLU"]
    assert kinds(m + [nn.Tanh()])[-1] == "Tanh" and repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    m = nn.ModuleDict({"a": nn.ReLU()})
    m["b"] = nn.Tanh()
    m.update([("c", nn.SiLU())])
    assert list(m) == ["a", "b", "c"] and "b" in m and kinds(m.values()) == ["ReLU", "Tanh", "SiLU"]
    assert type(m.pop("a")) is nn.ReLU
    del m["b"]
    assert list(m.keys()) == ["c"]
    m.clear()
    assert len(m) == 0


def test_parameter_list():
    p = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), "x"])
    assert [n for n, _ in p.named_parameters()] == ["0", "1"] and p[2] == "x" and len(p) == 3
    p.append(torch.ones(1))
    p[0] = torch.zeros(3)
    assert type(p[0]) is nn.Parameter and p[-1].tolist() == [1.0] and len(p[1:3]) == 2
    assert (
        repr(nn.ParameterList([torch.ones(2, 3), 3])) == "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Object of type: int\n)"
    )


def test_parameter_dict():
    p = nn.ParameterDict({"b": torch.ones(1), "a": torch.zeros(2)})
    assert [n for n, _ in p.named_parameters()] == ["a", "b"] and list(p) == ["a", "b"]
    q = p | {"c": torch.ones(3)}
    assert list(q) == ["a", "b", "c"] and q["b"] is p["b"]
    assert p.get("z") is None and p.setdefault("z", torch.ones(1)).tolist() == [1.0]
    assert p.popitem()[0] == "z" and p.pop("b").tolist() == [1.0] and len(p) == 1
    assert repr(p) == "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2])"
