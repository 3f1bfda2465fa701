"""`__torch_dispatch__`: what modes and wrapper classes are told, and what they can change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import torchlab as torch
from torchlab import Tensor
from torchlab.utils import _python_dispatch as dispatch
from torchlab.utils._pytree import tree_map

aten = torch.ops.aten


class Log(dispatch.TorchDispatchMode):
    """Writes down the operators."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.told.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


class Wrapper(Tensor):
    """Holds a tensor; counts calls."""

    elem: Tensor
    calls: list[str] = []

    @staticmethod
    def __new__(cls: Any, elem: Tensor, requires_grad: bool = False) -> Any:
        r = Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device,
            requires_grad=requires_grad,
        )  # fmt: skip
        r.elem = elem
        return r

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(str(func).removeprefix("aten."))
        inner = tree_map(lambda x: x.elem if isinstance(x, cls) else x, (args, kwargs or {}))
        out = func(*inner[0], **inner[1])
        out = tree_map(lambda x: cls(x) if isinstance(x, Tensor) else x, out)
        return dispatch.return_and_correct_aliasing(func, args, kwargs, out)


def test_composites_arrive_in_parts_and_backward_is_told() -> None:
    x, w, b = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True), torch.zeros(4)
    with Log() as log:
        y = torch.nn.functional.linear(x, w, b).relu().sum()
        forward = list(log.told)
        y.backward()
    assert forward == [
        "t.default",
        "addmm.default",
        "relu.default",
        "detach.default",
        "sum.default",
    ]
    assert log.told[5:] == [
        "ones_like.default", "expand.default", "detach.default", "threshold_backward.default",
        "t.default", "mm.default", "t.default", "t.default", "detach.default",
    ]  # fmt: skip
    assert w.grad.tolist() == [[2.0] * 3] * 4


def test_arguments_are_told_as_pytorch_tells_them() -> None:
    seen: list[Any] = []

    class Seen(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append((str(func), len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with Seen():
        torch.add(x, x, alpha=2)
        x.sum(1)
        x.sum(1, keepdim=True)
        x.eq(1)
        torch.zeros(2, dtype=torch.int64)
        torch.exp(x, out=torch.empty(0))
    assert seen == [
        ("aten.add.Tensor", 2, ["alpha"]),
        ("aten.sum.dim_IntList", 2, []),
        ("aten.sum.dim_IntList", 3, []),
        ("aten.eq.Scalar", 2, []),
        ("aten.zeros.default", 1, ["device", "dtype", "pin_memory"]),
        ("aten.empty.memory_format", 1, ["device", "pin_memory"]),
        ("aten.exp.out", 1, ["out"]),
    ]


def test_modes_nest_and_can_be_switched_off() -> None:
    with Log() as outer:
        with Log() as inner:
            torch.ones(2).neg()
            assert dispatch._get_current_dispatch_mode_stack() == [outer, inner]
            with dispatch._disable_current_modes():
                torch.ones(2).exp()
        torch.zeros(1)
    assert inner.told == ["ones.default", "neg.default"]
    assert outer.told == [*inner.told, "zeros.default"]
    assert dispatch._get_current_dispatch_mode() is None


def test_a_mode_may_answer_itself_and_the_tape_still_records() -> None:
    class Seven(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if func is aten.relu.default:
                return args[0] * 0 + 7
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Seven():
        y = torch.relu(x)
    assert y.tolist() == [7.0, 7.0] and y.grad_fn.name() == "ReluBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_error_leaves_no_mode_behind() -> None:
    class Refuses(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            raise ValueError(str(func))

    with pytest.raises(ValueError, match=r"aten\.ones\.default"), Refuses():
        torch.ones(2)
    assert (torch.ones(1) + 1).item() == 2

    class Declines(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.ones.default'"):
        with Declines():
            torch.ones(2)


def test_a_wrapper_computes_records_and_writes() -> None:
    Wrapper.calls.clear()
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * x).sum()
    assert type(y) is Wrapper and y.elem.item() == 5.0
    y.backward()
    assert type(x.grad) is Wrapper and x.grad.elem.tolist() == [2.0, 4.0]
    assert Wrapper.calls[:2] == ["mul.Tensor", "sum.default"]

    z = Wrapper(torch.zeros(2))
    v = z.view(2, 1)
    assert z.add_(1) is z and z.elem.tolist() == [1.0, 1.0] and v.elem.tolist() == [[1.0], [1.0]]
    assert v._base is z and z._version == 1
    assert type(torch.zeros_like(z)) is Wrapper and type(z.new_ones(3)) is Wrapper
    assert type(torch.ones(2) + z) is Wrapper


def test_a_write_to_what_was_saved_is_noticed() -> None:
    x = Wrapper(torch.ones(2), requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_wrapper_as_a_parameter_and_its_copy() -> None:
    p = torch.nn.Parameter(Wrapper(torch.ones(2)))
    assert type(p) is Wrapper and isinstance(p, torch.nn.Parameter) and p.requires_grad
    assert not isinstance(Wrapper(torch.ones(1)), torch.nn.Parameter)
    c = copy.deepcopy(p)
    c.elem.add_(1)
    assert type(c) is Wrapper and c.requires_grad and p.elem.tolist() == [1.0, 1.0]


def test_a_wrapper_needs_a_handler_and_strides_that_fit() -> None:
    class Bare(Tensor):
        pass

    with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
        Tensor._make_wrapper_subclass(Bare, (2,))
    with pytest.raises(RuntimeError, match="1 sizes, 2 strides"):
        Tensor._make_wrapper_subclass(Wrapper, (2,), strides=(1, 1))
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        Tensor._make_subclass(Bare, [1.0])


def test_overloads_know_themselves() -> None:
    f = aten.add.Tensor
    assert (
        repr(f) == "<OpOverload(op='aten.add', overload='Tensor')>"
        and f.name() == "aten::add.Tensor"
    )
    assert f.overloadpacket is aten.add and f is aten.add.Tensor
    assert str(aten.add_.Tensor._schema) == (
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    )
    assert aten.add_.Tensor._schema.is_mutable and aten.t.default.is_view
    assert [a.name for a in aten.add.out._schema.arguments] == ["self", "other", "alpha", "out"]
    assert copy.deepcopy(f) is f
    with pytest.raises(RuntimeError, match="missing value for argument 'mat2'"):
        aten.mm.default(torch.eye(2))


def test_every_operator_is_found_with_a_schema() -> None:
    names = dir(aten)
    assert len(names) > 600
    for name in names:
        packet = getattr(aten, name)
        for overload in packet.overloads():
            assert str(getattr(packet, overload)._schema).startswith("aten::")
