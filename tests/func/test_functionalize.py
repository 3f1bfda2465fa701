"""`functionalize`: the same results, and no operator in place."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab
from torchlab import func
from torchlab.utils._python_dispatch import TorchDispatchMode

OUTSIDE = torchlab.zeros(2)


class Seen(TorchDispatchMode):
    """Remembers the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(op._opname)
        return op(*args, **(kwargs or {}))


def elements(x: Any) -> Any:
    y = x * 2
    y[1].mul_(3)
    y[2:].add_(1)
    row = y.view(2, 2)
    y[0] = 7
    row.t()[0].neg_()
    y.unsqueeze(0).sub_(row.reshape(1, 4))
    y[:2].copy_(y[2:])
    return y, row.permute(1, 0), x.add(1).relu_()


def parts(x: Any) -> Any:
    y = x * 2
    a, b = y.split(2)
    a.copy_(b)
    y.unbind()[3].fill_(9)
    y.view(2, 2).diagonal().add_(1)
    return y, a, b


def into_the_argument(x: Any) -> Any:
    part = x[1:3]
    part.zero_()
    return part + 1


@pytest.mark.parametrize("program", [elements, parts])
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_results_are_the_same_and_nothing_is_written(remove: str, program: Any) -> None:
    x = torchlab.arange(4.0)
    wanted = program(x.clone())
    with Seen() as seen:
        made = func.functionalize(program, remove=remove)(x)
    for m, w in zip(made, wanted, strict=True):
        assert m.tolist() == w.tolist()
    assert x.tolist() == [0, 1, 2, 3]
    assert not [n for n in seen.names if n.endswith("_")]


def test_arguments_are_copied_into_at_the_end() -> None:
    x = torchlab.arange(4.0)
    with Seen() as seen:
        made = func.functionalize(into_the_argument)(x)
    assert made.tolist() == [1, 1]
    assert x.tolist() == [0, 0, 0, 3]
    assert [n for n in seen.names if n.endswith("_")] == ["copy_"]


def test_under_other_transforms() -> None:
    x = torchlab.arange(8.0).view(2, 4)
    pure = func.functionalize(lambda x: elements(x)[0].sin().sum())
    wanted = [func.grad(lambda x: elements(x)[0].sin().sum())(r).tolist() for r in x]
    assert [func.grad(pure)(r).tolist() for r in x] == wanted
    made = func.vmap(func.grad(pure))(x)
    for m, w in zip(made, wanted, strict=True):
        assert m.tolist() == pytest.approx(w)


def test_other_words_are_refused() -> None:
    with pytest.raises(RuntimeError, match="mutations_and_views"):
        func.functionalize(elements, remove="views")
    with pytest.raises(RuntimeError, match="no argument"):
        func.functionalize(lambda x: OUTSIDE.add_(x))(torchlab.ones(2))
