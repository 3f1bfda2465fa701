"""assert_close: what passes, and the text of what does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as tl
from torchlab.testing import assert_close

NAN = math.nan


def text(actual, expected, **kwargs) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **kwargs)
    return str(caught.value)


def test_what_is_close():
    x = tl.tensor([1.0, 2.0])
    assert_close(x, x + 1e-6)
    assert_close(x.to(tl.bfloat16), (x + 0.01).to(tl.bfloat16))
    assert_close(x, tl.tensor([1.4, 2.0]), rtol=0.5, atol=0)
    assert_close(tl.tensor([NAN]), tl.tensor([NAN]), equal_nan=True)
    assert_close([1, {"a": x}], (1, {"a": x}))
    assert_close(x, tl.tensor([1, 2]), check_dtype=False)
    assert_close(np.array([1.0]), np.array([1.0]))
    assert_close(x, tl.tensor([[1.0, 0], [2.0, 0]])[:, 0])
    assert_close(None, None)
    assert_close(True, True)
    assert_close(tl.empty(0), tl.empty(0))
    assert_close(tl.empty(2, device="meta"), tl.empty(2, device="meta"))


def test_the_worst_elements_are_named():
    actual = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = tl.tensor([[1.0, 4.0], [3.0, 8.0]])
    assert (
        text(actual, expected) == "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 4.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (0, 1) (up to 1.3e-06 allowed)"
    )
    assert (
        text(tl.tensor([1, 2]), tl.tensor([1, 4])) == "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 2 at index (1,)\n"
        "Greatest relative difference: 0.5 at index (1,)"
    )
    assert "difference: nan at index (0,)" in text(tl.tensor([NAN]), tl.tensor([NAN]))
    assert "difference: 1.0 at index (0,)" in text(tl.tensor([1j]), tl.tensor([2j]))


def test_numbers():
    expected = (
        "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
        "Relative difference: 0.5 (up to 1e-07 allowed)"
    )
    assert text(1.0, 2.0) == expected
    assert "Expected 2.0 but got 1.0." in text(tl.tensor(1.0), tl.tensor(2.0))
    assert text(1, 1.0) == "The (d)types do not match: <class 'int'> != <class 'float'>."
    assert text(True, False) == "Booleans mismatch: True is not False"
    assert text(None, 1) == "None mismatch: None is not 1"


def test_attributes():
    x = tl.ones(2, 2)
    assert text(x, tl.ones(2)).startswith(
        "The values for attribute 'shape' do not match: torch.Size"
    )
    assert "'dtype' do not match: torch.float32 != torch.float64" in text(x, x.double())
    assert "'stride()' do not match: (2, 1) != (1, 2)" in text(x, x.t().clone(), check_stride=True)
    assert "'device' do not match: cpu != meta" in text(x, tl.ones(2, 2, device="meta"))


def test_the_place_in_a_nest():
    assert text([1, [2.0]], [1, [3.0]]).endswith("The failure occurred for item [1][0]")
    assert text({"a": [1]}, {"a": [2]}).endswith("The failure occurred for item ['a'][0]")
    assert text([1], [1, 2]) == "The length of the sequences mismatch: 1 != 2"
    assert (
        text({"a": 1}, {"b": 1}) == "The keys of the mappings do not match:\n"
        "Missing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']"
    )


def test_own_messages():
    assert text(1, 2, msg="no") == "no"
    assert text([1], [2], msg=lambda m: m.splitlines()[-1]).endswith("for item [0]")


def test_what_cannot_be_compared():
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(tl.ones(1), 1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(tl.nn.Parameter(tl.ones(1)), tl.ones(1), allow_subclasses=False)
    with pytest.raises(ValueError, match="but got no atol"):
        assert_close(1.0, 1.0, rtol=0)
