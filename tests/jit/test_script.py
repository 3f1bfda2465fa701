"""torch.jit.script: what may be scripted, what scripts compute, how they refuse."""

import copy
from typing import Any

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.jit import annotations

offset = 2


def clipped(x, low: float, high: float | None = None, times: int = 1):
    for _ in range(times):
        x = x.clamp(low, high)
    return x


def test_it_computes_what_python_computes_with_the_arguments_cast():
    f = torch.jit.script(clipped)
    x = torch.tensor([-1.0, 0.5, 3.0])
    assert f(x, 0).tolist() == [0.0, 0.5, 3.0]
    assert f(x, torch.tensor(0.25), high=1, times=2).tolist() == [0.25, 0.5, 1.0]
    assert f.name == "clipped" and torch.jit.script(f) is f
    assert f.schema == "clipped(Tensor x, float low, float? high=None, int times=1) -> Tensor"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((3, 1.0), {}, r"Expected a value of type 'Tensor \(inferred\)' for argument 'x'"),
        ((torch.ones(1), "a"), {}, "Expected a value of type 'float' for argument 'low'"),
        ((torch.ones(1), 0.0, 1.0, 2.5), {}, "Expected a value of type 'int' for argument 'times'"),
        ((torch.ones(1),), {}, "is missing value for argument 'low'"),
        ((torch.ones(1), 0.0, 1.0, 1, 1), {}, r"expected at most 4 argument\(s\) but received 5"),
        ((torch.ones(1), 0.0), {"other": 1}, "Unknown keyword argument 'other'"),
    ],
)
def test_wrong_arguments_are_refused(args, kwargs, message):
    with pytest.raises(RuntimeError, match=message):
        torch.jit.script(clipped)(*args, **kwargs)


def weighted(x, k: annotations.BroadcastingList2[int]):
    return x * k[0] + k[1]


def test_one_number_stands_for_a_list_of_them():
    f = torch.jit.script(weighted)
    assert f.schema == "weighted(Tensor x, int[2] k) -> Tensor"
    assert f(torch.ones(1), 4).tolist() == [8.0]
    assert [f(torch.ones(1), k).tolist() for k in ([1, 2], (1, 2), [1, 2, 3])] == [[3.0]] * 3
    for k in (1.5, [1.5, 2]):
        with pytest.raises(RuntimeError, match="Expected a value of type"):
            f(torch.ones(1), k)


def integers(n: int) -> tuple[int, int, float, int]:
    return -n // 2, -n % 2, n / 2, n**2


def test_numbers_are_pythons():
    assert torch.jit.script(integers)(7) == (-4, 1, 3.5, 49)


def takes(v: Any) -> int:
    if isinstance(v, int):
        return v
    assert isinstance(v, str), "neither"
    return len(v)


def raises(x):
    raise ValueError("too bad")


def test_what_a_script_raises_itself_is_jit_error():
    f = torch.jit.script(takes)
    assert (f(5), f("abc")) == (5, 3)
    with pytest.raises(torch.jit.Error, match="AssertionError: neither"):
        f([1])
    with pytest.raises(torch.jit.Error, match="<--- HERE"):
        torch.jit.script(raises)(torch.ones(1))


def with_try(x):
    try:
        return x
    except ValueError:
        return x


def calls_it(x):
    return with_try(x)


def yields(x):
    yield x


def has_set(x):
    return {1, 2}


def opens(x):
    with open("a"):
        return x


def varied(x, *more):
    return x


def unknown(x):
    return x + nothing_of_this_name  # noqa: F821


def looped(x):
    for _ in range(2):
        x = x + 1
    else:
        x = x - 1
    return x


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (with_try, torch.jit.frontend.UnsupportedNodeError, "try blocks aren't supported"),
        (calls_it, torch.jit.frontend.UnsupportedNodeError, "try blocks aren't supported"),
        (yields, torch.jit.frontend.UnsupportedNodeError, "Yield aren't supported"),
        (has_set, torch.jit.frontend.UnsupportedNodeError, "Set aren't supported"),
        (looped, torch.jit.frontend.UnsupportedNodeError, "else branches of for loops"),
        (varied, torch.jit.frontend.NotSupportedError, "variable number of arguments"),
        (opens, RuntimeError, "open> is currently not supported"),
        (unknown, RuntimeError, "undefined value nothing_of_this_name"),
        (nn.Linear, RuntimeError, "consider passing an instance"),
        (3, TypeError, "is a built-in class"),
    ],
)
def test_what_is_no_script_is_refused_with_its_place(fn, error, message):
    with pytest.raises(error, match=message):
        torch.jit.script(fn)


def scripting(x):
    return x * 10 if torch.jit.is_scripting() else x


@torch.jit.ignore
def python_only(x):
    try:
        return (x + 1, torch.jit.is_scripting())
    except ValueError:
        return x


@torch.jit.unused
def never(x):
    return x


def uses(x, which: int):
    if which == 0:
        return python_only(x)
    return never(x)


def layers(x):
    if torch.jit.is_scripting():
        return x + 1
    if has_package:  # noqa: F821  a name of a package that may be missing
        return from_package(x)  # noqa: F821
    with torch.no_grad():
        return x


def test_what_follows_a_return_is_not_looked_at():
    assert torch.jit.script(layers)(torch.ones(1)).tolist() == [2.0]


def test_marks_and_is_scripting():
    x = torch.ones(1)
    assert torch.jit.script(scripting)(x).item() == 10 and scripting(x).item() == 1
    f = torch.jit.script(uses)
    y, inside = f(x, 0)
    assert y.item() == 2 and inside is False
    with pytest.raises(torch.jit.Error, match="annotated to be ignored"):
        f(x, 1)


def plus_offset(x):
    return x + offset


def test_global_names_keep_the_value_they_had(monkeypatch):
    f = torch.jit.script(plus_offset)
    monkeypatch.setitem(globals(), "offset", 5)
    assert (f(torch.ones(1)).item(), plus_offset(torch.ones(1)).item()) == (3, 6)


def test_isinstance_looks_into_containers():
    assert torch.jit.isinstance([1, 2], list[int]) and not torch.jit.isinstance([1, "a"], list[int])
    assert torch.jit.isinstance((1, "a"), tuple[int, str])
    assert torch.jit.isinstance({"a": torch.ones(1)}, (int, dict[str, torch.Tensor]))


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.factor = 3

    def forward(self, x):
        return self.helper(self.linear(x)) * self.factor

    def helper(self, x):
        return x + 1

    @torch.jit.export
    def other(self, x):
        return x - 1

    def python(self, x):
        try:
            return x
        except ValueError:
            return x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        x = self.inner(x)
        for layer in self.layers:
            x = layer(x)
        return x + self.shift


class Lacks(nn.Module):
    def forward(self, x):
        return self.missing(x)


def test_a_module_with_all_that_is_in_it():
    m = Outer()
    s = torch.jit.script(m)
    x = torch.randn(3, 2)
    assert torch.equal(s(x), m(x)) and torch.equal(copy.deepcopy(s)(x), m(x))
    assert s.inner.linear.weight is m.inner.linear.weight and s.inner.factor == 3
    assert list(s.state_dict()) == list(m.state_dict())
    assert torch.equal(s.inner.other(x), x - 1) and torch.equal(s.inner.helper(x), x + 1)
    assert isinstance(s, torch.jit.ScriptModule) and torch.jit.script(s) is s
    assert repr(s.inner) == (
        "RecursiveScriptModule(\n  original_name=Inner\n"
        "  (linear): RecursiveScriptModule(original_name=Linear)\n)"
    )
    with pytest.raises(AttributeError, match="no attribute 'python'"):
        s.inner.python(x)
    with pytest.raises(RuntimeError, match="Position: 1"):
        s(3)
    s.eval()
    assert not s.inner.training and m.training


def test_a_module_that_asks_for_what_it_has_not_got():
    with pytest.raises(RuntimeError, match="Module 'Lacks' has no attribute 'missing'"):
        torch.jit.script(Lacks())


def test_the_type_of_tensors_has_a_name() -> None:
    t = torch.TensorType.get()
    assert (str(t), t.kind(), t.annotation_str) == ("Tensor", "TensorType", "Tensor")
    assert t is torch.TensorType.get() and isinstance(t, torch.TensorType)
