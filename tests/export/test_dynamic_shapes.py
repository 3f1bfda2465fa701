"""What is declared of sizes, and what programs ask of them."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import nn
from torchlab._dynamo.exc import UserError
from torchlab.export import Dim, ShapesCollection, dims, export
from torchlab.fx.experimental.symbolic_shapes import ConstraintViolationError

B = Dim("b", min=1, max=99)
D = Dim("d")


def run(f, args, shapes):
    class M(nn.Module):
        def forward(self, x, y=None):
            return f(x) if y is None else f(x, y)

    return export(M(), args, dynamic_shapes=shapes)


def ranges(program):
    return {str(k): str(v) for k, v in program.range_constraints.items()}


def test_dims():
    assert repr(D) == "Dim('d', min=0)" and repr(B) == "Dim('b', min=1, max=99)"
    assert (2 * D + 1).__name__ == "2*d + 1" and repr(D + 1 - 1) == "d"
    assert [d.__name__ for d in dims("x", "y", min=2)] == ["x", "y"]
    assert repr(Dim.AUTO(min=2, max=5)) == "DimHint(AUTO, min=2, max=5)"
    with pytest.raises(AssertionError, match="inconsistent min=5, max=2"):
        Dim("n", min=5, max=2)
    with pytest.raises(NotImplementedError, match="increasing linear operations"):
        D * D
    with pytest.raises(NotImplementedError, match="increasing linear operations"):
        D * -1


def test_specialised_dims_are_named_with_the_line():
    def f(x):
        return x + torch.ones(5, 2)

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(UserError) as e:
        run(f, (torch.ones(5, 2),), ({0: B},))
    text = str(e.value)
    assert text.startswith("Constraints violated (b)!")
    assert f"your code specialized it to be a constant (5) ({__file__}:{line})" in text
    assert text.endswith("Suggested fixes:\n  b = 5")
    assert isinstance(e.value.__cause__, ConstraintViolationError)
    assert ranges(run(f, (torch.ones(5, 2),), ({0: Dim.AUTO},))) == {}
    with pytest.raises(UserError, match=r"L\['x'\]\.size\(\)\[0\] as dynamic but your code spec"):
        run(f, (torch.ones(5, 2),), ({0: Dim.DYNAMIC},))


@pytest.mark.parametrize(
    "f", [lambda x: [x[i] for i in range(x.shape[0])], lambda x: x * len([0] * x.shape[0])]
)
def test_python_that_needs_the_number_specialises(f):
    with pytest.raises(UserError, match="specialized it to be a constant"):
        run(f, (torch.ones(5, 2),), ({0: B},))


def test_a_narrower_range_is_suggested():
    def f(x):
        return x + 1 if x.shape[0] > 3 else x - 1

    with pytest.raises(UserError) as e:
        run(f, (torch.ones(5, 2),), ({0: B},))
    assert "b <= 99 satisfy the generated guard 4 <= L['x'].size()[0]" in str(e.value)
    assert str(e.value).endswith("b = Dim('b', min=4, max=99)")
    program = run(f, (torch.ones(5, 2),), ({0: Dim.AUTO},))
    assert ranges(program) == {"s0": "VR[4, int_oo]"}
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] >= 4"):
        program.module()(torch.ones(3, 2))


def test_equal_sizes():
    def add(x, y):
        return x + y

    args = torch.ones(5, 2), torch.ones(5, 2)
    with pytest.raises(UserError, match="must always be equal") as e:
        run(add, args, ({0: B}, {0: Dim("c")}))
    assert str(e.value).endswith("c = b")
    assert ranges(run(add, args, ({0: B}, {0: B}))) == {"s0": "VR[1, 99]"}
    made = run(add, args, ({0: Dim.AUTO}, {0: Dim.AUTO})).module()
    assert made(torch.ones(3, 2), torch.ones(3, 2)).shape == (3, 2)
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] == x\.size\(\)\[0\]"):
        made(torch.ones(5, 2), torch.ones(6, 2))
    for first, second in (({0: Dim.AUTO}, {0: B}), ({0: B}, {0: Dim.AUTO})):
        program = run(add, args, (first, second))  # what is open follows what is declared
        assert list(ranges(program).values()) == ["VR[1, 99]"]
    with pytest.raises(UserError, match=r"= 5 is not equal to L\['x'\]\.size\(\)\[0\] = 4"):
        run(add, (torch.ones(4, 2), torch.ones(5, 2)), ({0: B}, {0: B}))


def test_derived_and_divisible_sizes():
    def pairs(x):
        return x.reshape(-1, 2, x.shape[1])

    program = run(pairs, (torch.ones(6, 2),), ({0: 2 * D},))
    assert ranges(program) == {"2*s0": "VR[0, int_oo]", "s0": "VR[0, int_oo]"}
    assert program.module()(torch.ones(8, 2)).shape == (4, 2, 2)
    with pytest.raises(AssertionError, match=r"x\.size\(\)\[0\] % 2 == 0"):
        program.module()(torch.ones(7, 2))
    with pytest.raises(UserError) as e:
        run(pairs, (torch.ones(6, 2),), ({0: B},))
    assert "guard b == 2*_b" in str(e.value) and str(e.value).endswith("  b = 2*_b")
    auto = run(pairs, (torch.ones(6, 2),), ({0: Dim.AUTO},)).module()
    assert auto(torch.ones(10, 2)).shape == (5, 2, 2)
    with pytest.raises(AssertionError, match="% 2 == 0"):
        auto(torch.ones(5, 2))
    shifted = run(lambda x, y: y[1:] + x, (torch.ones(6), torch.ones(7)), ({0: D}, {0: D + 1}))
    assert shifted.module()(torch.ones(2), torch.ones(3)).shape == (2,)
    with pytest.raises(UserError, match=r"of the form 2\*d, where d is an integer"):
        run(pairs, (torch.ones(5, 2),), ({0: 2 * D},))


def test_sizes_are_computed_in_the_graph():
    program = run(
        lambda x: (x.shape[0] * 2 + 1, x * (1 / x.shape[0]), torch.zeros(x.shape[0] // 2)),
        (torch.ones(4, 2),), ({0: B},),
    )  # fmt: skip
    n, y, z = program.module()(torch.ones(7, 2))
    assert n == 15 and z.shape == (3,) and abs(float(y[0, 0]) - 1 / 7) < 1e-6


def test_numbers_may_vary_too():
    class M(nn.Module):
        def forward(self, x, n):
            return x * n, x.new_zeros(n)

    program = export(M(), (torch.ones(2), 5), dynamic_shapes={"x": None, "n": Dim.DYNAMIC})
    y, z = program.module()(torch.ones(2), 7)
    assert float(y[0]) == 7 and z.shape == (7,)


def test_examples_of_one():
    with pytest.raises(UserError, match="give an example of 2 or more"):
        run(lambda x: x, (torch.ones(1, 2),), ({0: B},))
    assert ranges(run(lambda x: x, (torch.ones(1, 2),), ({0: Dim.AUTO},))) == {}


@pytest.mark.parametrize(
    ("shapes", "error", "said"),
    [
        (({5: B},), UserError, "dims of"),
        ({"z": {0: B}}, UserError, r"must be the arg names \['x'\]"),
        (({0: "a"},), UserError, "expected None, an int, a Dim"),
        (({0: 3},), ConstraintViolationError, "Static shape constraint of 3 does not match"),
        (((B,),), UserError, "to have the same length"),
        (({0: B}, {0: B}), UserError, "`inputs` has 1 elements, but `dynamic_shapes` has 2"),
        (({0: Dim("b", max=3)},), ConstraintViolationError, r"4 not in range \[0, 3\]"),
    ],
)
def test_bad_specifications(shapes, error, said):
    with pytest.raises(error, match=said):
        run(lambda x: x, (torch.ones(4, 2),), shapes)


def test_shapes_by_tensor():
    x, y = torch.ones(4, 2), torch.ones(4, 2)
    shapes = ShapesCollection()
    shapes[x] = {0: B}
    shapes[y] = {0: B}
    assert ranges(run(lambda x, y: x + y, (x, y), shapes)) == {"s0": "VR[1, 99]"}
