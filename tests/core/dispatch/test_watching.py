"""The public functions ask while a mode is on or a class overrides; otherwise they are alone."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest

import torchlab as torch
from torchlab._core.dispatch import watching
from torchlab.nn import functional
from torchlab.overrides import TorchFunctionMode


class Log(TorchFunctionMode):
    """Remembers the calls, and lets them go on."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, len(args), sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


def test_a_function_has_its_own_body_while_no_mode_is_on() -> None:
    own = torch.add.__code__
    with Log():
        assert torch.add.__code__ is not own and watching.code_of(torch.add) is own
        with Log():
            pass
        assert torch.add.__code__ is not own
    assert torch.add.__code__ is own
    with pytest.raises(ZeroDivisionError), Log():
        raise ZeroDivisionError
    assert torch.add.__code__ is own


def test_signatures_are_the_same_while_a_mode_is_on() -> None:
    functions = (torch.add, torch.sum, functional.pad, functional.relu, torch.Tensor.max)
    before = [inspect.signature(f) for f in functions]
    with Log():
        assert [inspect.signature(f) for f in functions] == before


@pytest.mark.parametrize(
    ("call", "func", "args", "kwargs"),
    [
        (lambda x: torch.add(x, x, alpha=2), lambda: torch.add, 2, ["alpha"]),
        (lambda x: torch.add(input=x, other=x), lambda: torch.add, 0, ["input", "other"]),
        (lambda x: x + x, lambda: torch.Tensor.add, 2, []),
        (lambda x: 1 - x, lambda: torch.Tensor.__rsub__, 2, []),
        (lambda x: x // 2, lambda: torch.Tensor.__floordiv__, 2, []),
        (lambda x: x.max(0), lambda: torch.Tensor.max, 2, []),
        (lambda x: x.view(2, 2), lambda: torch.Tensor.view, 3, []),
        (lambda x: x[0], lambda: torch.Tensor.__getitem__, 2, []),
        (lambda x: x.shape, lambda: torch.Tensor.shape.__get__, 1, []),
        (lambda x: x.T, lambda: torch.Tensor.T.__get__, 1, []),
        (lambda x: x.size(0), lambda: torch.Tensor.size, 2, []),
        (lambda x: len(x), lambda: torch.Tensor.__len__, 1, []),
        (lambda x: repr(x), lambda: torch.Tensor.__repr__, 1, ["tensor_contents"]),
        (lambda x: torch.arctan(x), lambda: torch.arctan, 1, []),
        (lambda x: torch.einsum("ij->ji", x), lambda: torch.einsum, 2, []),
        (lambda x: torch.split(x, 1), lambda: torch.split, 2, ["dim"]),
        (lambda x: functional.relu(x), lambda: functional.relu, 1, ["inplace"]),
        (lambda x: functional.pad(x, (1, 1)), lambda: functional.pad, 2, ["mode", "value"]),
        (lambda x: functional.linear(x, x), lambda: functional.linear, 2, []),
        (
            lambda x: functional.scaled_dot_product_attention(x, x, x),
            lambda: functional.scaled_dot_product_attention, 3, [],
        ),
        (
            lambda x: functional.dropout(x, 0.5, False),
            lambda: functional.dropout, 1, ["inplace", "p", "training"],
        ),
        (
            lambda x: torch.rnn_tanh_cell(x, x, x, x), lambda: torch.rnn_tanh_cell, 4, [],
        ),
        (lambda x: torch.zeros(2), lambda: torch.zeros, 1, []),
        (lambda x: torch._foreach_add([x], 1), lambda: torch._foreach_add, 2, []),
        (
            lambda x: torch.nn.init.constant_(x, 1.0),
            lambda: torch.nn.init.constant_, 0, ["tensor", "val"],
        ),
    ],
)  # fmt: skip
def test_a_mode_is_told_the_function_that_was_called(
    call: Any, func: Any, args: int, kwargs: list[str]
) -> None:
    x = torch.ones(2, 2)
    with Log() as log:
        call(x)
    (told,) = log.calls
    assert told == (func(), args, kwargs)


def test_functions_about_which_nobody_is_asked() -> None:
    with Log() as log:
        torch.manual_seed(0)
        torch.is_tensor(1)
        torch.broadcast_shapes((2,), (1,))
    assert log.calls == []


def test_a_name_imported_before_asks_and_one_first_looked_up_within() -> None:
    from torchlab import hypot

    x = torch.ones(2)
    with Log() as log:
        hypot(x, x)
        torch.nextafter(x, x)
        x.copysign(x)
    assert [f for f, _, _ in log.calls] == [hypot, torch.nextafter, torch.Tensor.copysign]


def test_other_threads_are_not_asked() -> None:
    x = torch.ones(2)
    results = []
    with Log() as log:
        thread = threading.Thread(target=lambda: results.append((x.shape, functional.relu(x))))
        thread.start()
        thread.join()
    assert log.calls == [] and results[0][0] == (2,)


def test_gradients_are_told_as_one_call() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    with Log() as log:
        (g,) = torch.autograd.grad(y, x)
    assert [f.__name__ for f, _, _ in log.calls] == ["grad"] and g.tolist() == [2, 2]
    with Log() as log:
        (x * x).sum().backward()
    assert [f.__name__ for f, _, _ in log.calls] == ["mul", "sum", "backward"]


def test_out_asks_its_class_and_those_of_the_operands() -> None:
    asked: list[Any] = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append((func, types, len(args), [*(kwargs or {})]))
            return super().__torch_function__(func, types, args, kwargs or {})

    x, s = torch.ones(2), torch.zeros(2).as_subclass(Sub)
    asked.clear()
    r = torch.add(x, x, out=s)
    assert asked == [(torch.add, (Sub,), 2, ["out"])] and r is s
    with torch._C.DisableTorchFunctionSubclass():
        assert s.tolist() == [2, 2]
    out = torch.ones(2)
    for call, func in (
        (lambda: torch.mul(s, 3, out=out), torch.mul),
        (lambda: torch.cat([x, s], out=out), torch.cat),
        (lambda: torch.sum(x, out=s), torch.sum),
        (lambda: torch.max(torch.ones(2, 2), 0, out=(s, torch.ones(2).long())), torch.max),
        (lambda: torch.linalg.norm(x, out=s), torch.linalg.norm),
    ):
        asked.clear()
        call()
        assert asked[0][0] is func and asked[0][1] == (Sub,) and asked[0][3][-1] == "out"
    with Log() as log:
        torch.add(x, x, out=out)
    assert log.calls == [(torch.add, 2, ["out"])]


def test_a_class_is_asked_wherever_its_instance_stands() -> None:
    asked: list[Any] = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x, s = torch.ones(2, 2), torch.ones(2, 2).as_subclass(Sub)
    places = torch.tensor([0, 1])
    for call, func in (
        (lambda: functional.embedding(places, s), functional.embedding),
        (lambda: functional.layer_norm(x, (2, 2), s), functional.layer_norm),
        (lambda: torch.einsum("ij,jk->ik", x, s), torch.einsum),
        (lambda: functional.scaled_dot_product_attention(x, x, s), None),
        (lambda: torch.where(x > 0, x, s), torch.where),
        (lambda: x.clamp(s), torch.Tensor.clamp),
        (lambda: torch.Tensor.dim(s), torch.Tensor.dim),
    ):
        asked.clear()
        call()
        assert asked[0] is (func or functional.scaled_dot_product_attention)
    with torch.DisableTorchFunction():
        asked.clear()
        functional.embedding(places, s)
    assert asked == []


def test_functions_that_take_any_object_ask_no_class() -> None:
    asked: list[Any] = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Foreign:
        """Another library's tensor, which has the protocol, too."""

        def __init__(self) -> None:
            self.data = torch.ones(2)

        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("asked")

        def __dlpack__(self, **kwargs: Any) -> Any:
            return self.data.__dlpack__(**kwargs)

        def __dlpack_device__(self) -> Any:
            return self.data.__dlpack_device__()

    assert torch.from_dlpack(Foreign()).tolist() == [1, 1]
    s = torch.ones(2).as_subclass(Sub)
    for make in (torch.as_tensor, torch.asarray):
        asked.clear()
        make(s)
        assert make not in asked
    with Log() as log:
        torch.as_tensor([1.0])
    assert log.calls == [(torch.as_tensor, 1, [])]
