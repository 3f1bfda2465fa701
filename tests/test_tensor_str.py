"""torch._tensor_str: the parts of a printed tensor."""

from __future__ import annotations

import torchlab as torch
from torchlab import _tensor_str as T


def test_elements():
    x = torch.arange(6.0).reshape(2, 3) / 7
    text = "[[0.0000, 0.1429, 0.2857],\n         [0.4286, 0.5714, 0.7143]]"
    assert T._tensor_str(x, 8) == text
    assert T._tensor_str(torch.ones(0, 3), 2) == "[]" and T._tensor_str(torch.tensor(3), 2) == "3"
    assert T._tensor_str(torch.tensor([1.5, 2], dtype=torch.bfloat16), 2) == "[1.5000, 2.0000]"


def test_suffixes():
    assert T._add_suffixes("foo([1]", ["a=3", "b=4"], 4, False) == "foo([1], a=3, b=4)"
    long = "4" * 80
    made = T._add_suffixes("foo([1]", ["a=3", f"b={long}"], 4, True)
    assert made == f"foo([1],\n    a=3,\n    b={long})"
    assert T._add_suffixes("foo([1]", [], 4, True) == "foo([1])"


def test_other_contents():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    made = "tensor([hey], dtype=torch.float64, requires_grad=True)"
    assert T._str_intern(x, tensor_contents="[hey]") == made
    assert x.__repr__(tensor_contents="[hey]") == made
    assert T._str_intern(torch.ones(2, dtype=torch.int64), tensor_contents="[1]") == "tensor([1])"
    p = torch.nn.Parameter(torch.ones(1))
    assert T._str(p) == "tensor([1.], requires_grad=True)"
    meta = torch.ones(3, device="meta")
    assert T._str_intern(meta, tensor_contents="x") == "tensor(x, device='meta', size=(3,))"


def test_options():
    assert T.PRINT_OPTS.threshold == 1000
    try:
        T.PRINT_OPTS.threshold = 3
        assert str(torch.arange(20)) == "tensor([ 0,  1,  2,  ..., 17, 18, 19])"
    finally:
        T.PRINT_OPTS.threshold = 1000
