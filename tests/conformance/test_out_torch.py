"""What `out=` does to a tensor: its history, its shape and strides, how often the write counts.

A line is a program; its last value (with shape, strides, version and the name of its node) or the
class of its exception must be PyTorch's.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")

# Makers have no derivative: the history of `out` says so.
MAKERS = """
o = torch.ones(2, requires_grad=True) * 1; torch.zeros(2, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.ones(3, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.full((2,), 3.0, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.eye(2, 3, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.arange(2, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.linspace(0, 1, 3, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.logspace(0, 1, 2, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.zeros(2, out=o, requires_grad=True)
o = torch.ones(2, requires_grad=True) * 1; torch.empty(2, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.randn(2, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.rand(2, out=o).mul_(0)
o = torch.ones(2, requires_grad=True) * 1; torch.randint(1, 2, (2,), out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.randperm(1, out=o)
o = torch.ones(2, requires_grad=True) * 1; torch.zeros(2, out=o); o.sum().backward()
o = torch.ones(2, requires_grad=True) * 1; v = o[:]; torch.zeros(2, out=o); v
o = torch.ones(2, requires_grad=True) * 1; v = o[:]; torch.zeros(2, out=v); o
o = torch.ones(2, requires_grad=True) * 1; v = o[:]; torch.zeros(3, out=v)
o = torch.ones(2, requires_grad=True); torch.zeros(2, out=o)
o = torch.ones(2, requires_grad=True)[:]; torch.arange(2, out=o)
o = (torch.ones(2, requires_grad=True) * 1).unbind()[0]; torch.zeros((), out=o)
o = torch.ones(2, requires_grad=True); quiet("torch.zeros(3, out=o)"); o
o = torch.ones(2, requires_grad=True); quiet("torch.empty(2, out=o)")
o = torch.ones(2, requires_grad=True); quiet("torch.zeros(2, out=o, requires_grad=True)"); o
o = torch.ones(2, requires_grad=True) * 1; quiet("torch.zeros(2, out=o)"); o
o = torch.ones(2, requires_grad=True)[:]; quiet("torch.zeros(2, out=o)"); o
m = torch.ones(3, requires_grad=True); torch.normal(m, 1.0, out=torch.empty(3))
m = torch.ones(3, requires_grad=True); torch.bernoulli(m, out=torch.empty(3))
"""
# Ranges keep the shape of an `out` that has as many elements.
SHAPES = """
torch.arange(6, out=torch.ones(2, 3))
torch.arange(6, out=torch.ones(2, 3).t())
torch.linspace(0, 5, 6, out=torch.ones(2, 3).t())
torch.logspace(0, 5, 6, out=torch.ones(2, 3).t())
torch.range(1, 6, out=torch.ones(2, 3).t())
torch.randperm(1, out=torch.ones(1, 1))
torch.arange(2, out=torch.ones(3))
torch.zeros(2, 3, out=torch.ones(2, 2).t())
torch.zeros(2, 2, out=torch.ones(2, 2).t())
torch.zeros(2, 2, out=torch.ones(2).expand(2, 2))
torch.full((2, 2), 3.0, out=torch.ones(2).expand(2, 2))
torch.arange(4, out=torch.ones(2).expand(2, 2))
torch.eye(3, out=torch.ones(2).expand(2, 2))
"""
# Three kinds: recorded as an operator without derivative, as a copy, or not at all.
HISTORIES = """
torch.conj_physical(x, out=torch.empty(3))
torch.conj_physical(x, out=torch.empty(3, dtype=torch.complex64))
o = torch.ones(3, requires_grad=True) * 1; torch.conj_physical(torch.ones(3), out=o)
o = torch.ones(3, requires_grad=True); torch.conj_physical(torch.ones(3), out=o)
torch.permute_copy(x, (0,), out=torch.empty(0))
torch.t_copy(x, out=torch.empty(3, dtype=torch.float64))
torch.t_copy(torch.ones(3), out=torch.empty(3, dtype=torch.int32))
torch.select_copy(x, 0, 1, out=torch.empty(0))
torch.slice_copy(x, 0, 1, 3, 1, out=torch.empty(0))
torch.expand_copy(x, (2, 3), out=torch.empty(0))
torch.view_copy(x, (3, 1), out=torch.empty(0))
torch.diag(x, out=torch.empty(0))
torch.diag(torch.ones(3), out=torch.empty(0, dtype=torch.float64))
torch.diagonal_copy(x.detach().expand(2, 3).requires_grad_(), out=torch.empty(0))
torch.softmax(x, 0, out=torch.empty(0))
torch.softmax(x, 0, out=torch.empty(3, dtype=torch.float64))
torch.log_softmax(x, 0, out=torch.empty(3))
o = torch.ones(3, requires_grad=True); torch.softmax(torch.ones(3), 0, out=o)
quiet("o = torch.softmax(x, 0, out=torch.empty(3))"); o
torch.linalg.eigvals(torch.eye(2, requires_grad=True), out=torch.empty(0, dtype=torch.complex64))
torch.inner(x, x, out=torch.empty(()))
torch.inner(x, x, out=torch.empty((), dtype=torch.float64))
torch.tensordot(x, x, 1, out=torch.empty(()))
torch.linalg.norm(x, 2, dim=0, out=torch.empty(0))
torch.linalg.norm(x[None], "fro", out=torch.empty(0))
torch.linalg.matrix_norm(x[None], 1, out=torch.empty(0))
torch.linalg.matrix_norm(x[None], 1, out=torch.empty(0, dtype=torch.float64))
torch.linalg.vector_norm(x, out=torch.empty(()))
torch.linalg.cond(torch.eye(2, requires_grad=True), out=torch.empty(()))
o = torch.ones(2, requires_grad=True) * 1; torch.inner(x, x, out=o)
o = torch.empty(()); torch.inner(x, x, out=o); o.backward(); x.grad
torch.special.ndtr(x, out=torch.empty(3)) > 0.5
torch.special.ndtr(x, out=torch.empty(3)).grad_fn.name().split("::")[-1]
torch.special.airy_ai(x, out=torch.empty(3)).requires_grad
torch.special.legendre_polynomial_p(x, 2, out=torch.empty(3)).requires_grad
o = torch.ones(3, requires_grad=True); torch.special.airy_ai(x, out=o).is_leaf
torch.diff(x, out=torch.empty(2))
torch.sin(x, out=torch.empty(3))
torch.nextafter(x, x, out=torch.empty(3))
"""
# What forbids to record a write forbids `out`, too, before the operator looks at the types; and an
# `out` that takes a recorded copy may get another shape, if it has a history that can go on.
REFUSED = """
o = torch.ones(3, requires_grad=True)[:]; torch.heaviside(x, x, out=o)
o = torch.ones(3).unbind()[0]; torch.heaviside(x, x, out=o)
o = torch.ones(2, 3).split(1)[0]; torch.floor_divide(x, 2.0, out=o)
o = torch.ones(2, 3).split(1)[0]; torch.floor_divide(x.detach(), 2.0, out=o)
o = torch.ones(3, requires_grad=True)[:]; torch.bitwise_xor(x, x, out=o)
o = torch.ones(2, 3).unbind()[0]; torch.bitwise_and(x, x, out=o)
o = (torch.ones(2, 3, requires_grad=True) * 1).unbind()[0]; torch.nextafter(x, x, out=o)
i = torch.ones(1).int(); quiet("o = torch.ones(1, requires_grad=True)[:]"); torch.gcd(i, i, out=o)
o = torch.ones(3, requires_grad=True)[:]; torch.softmax(x, 0, out=o)
o = torch.ones(0, requires_grad=True) * 1; torch.special.ndtr(x, out=o)
o = torch.ones(0, requires_grad=True); torch.special.ndtr(x, out=o)
o = torch.ones(0, requires_grad=True); quiet("torch.special.ndtr(x, out=o)"); o
o = torch.ones(0, requires_grad=True) * 1; quiet("torch.inner(x, x, out=o)"); o
o = torch.ones(0, requires_grad=True) * 1; torch.inner(x, x, out=o)
o = torch.ones(0, requires_grad=True) * 1; torch.linalg.norm(x, out=o)
o = torch.ones(0, requires_grad=True) * 1; torch.quantile(x, 0.5, out=o)
o = torch.ones(0, requires_grad=True); quiet("torch.quantile(x, 0.5, out=o)"); o
o = torch.ones(0, requires_grad=True); quiet("torch.bernoulli(torch.zeros(2), out=o)"); o
torch.hardshrink(x.detach().double(), out=torch.empty(3))
torch.linalg.det(torch.eye(2).double(), out=torch.empty(()))
torch.slogdet(torch.eye(2), out=(torch.empty(()), torch.empty((), dtype=torch.float64)))
torch.linalg.inv(torch.eye(2), out=torch.empty(0, dtype=torch.float64))
torch.inverse(torch.eye(2), out=torch.empty(0, dtype=torch.float64))
torch.linalg.qr(torch.eye(2).double(), out=(torch.empty(0), torch.empty(0)))
torch.msort(torch.ones(2).double(), out=torch.empty(2))
torch.renorm(torch.eye(2).double(), 2, 0, 1.0, out=torch.empty(2, 2))
"""
# Channels last stays where both parts that `roll` joins are so; `cat` keeps strides of size 1.
STRIDES = """
torch.arange(12.0).reshape(2, 1, 2, 3).to(memory_format=torch.channels_last).roll(1, 2)
torch.arange(12.0).reshape(2, 3, 1, 2).to(memory_format=torch.channels_last).roll(1, 2)
torch.arange(24.0).reshape(2, 3, 4, 1).to(memory_format=torch.channels_last).roll(0, 2)
torch.arange(24.0).reshape(2, 3, 4, 1).to(memory_format=torch.channels_last).roll((1, 2), (2, 0))
torch.arange(24.0).reshape(2, 3, 4, 1).to(memory_format=torch.channels_last)[:, ::2].roll(1, 0)
torch.arange(24.0).reshape(2, 12, 1, 1).transpose(1, 2).roll(1, 1)
torch.arange(24.0).reshape(1, 24, 1, 1).to(memory_format=torch.channels_last).roll(1, 1)
torch.cat([torch.ones(2, 1, 2, 3).to(memory_format=torch.channels_last)] * 2, 0)
torch.cat([torch.ones(2, 6, 1, 1).to(memory_format=torch.channels_last)] * 2, 3)
torch.arange(12.0).reshape(2, 1, 2, 3).to(memory_format=torch.channels_last).flip(2)
torch.ones(2, 1).t().int()
torch.ones(2, 1).t().type_as(torch.ones(1).int()).view(torch.int64)
torch.ones(2, 1).t().clone()
torch.ones(5, 1).as_strided((5, 1), (1, 7)).double()
torch.ones(2, 1).t().to(torch.int32, memory_format=torch.contiguous_format)
torch.ones(3, 1, 1, 2).to(memory_format=torch.channels_last).clone()
torch.empty_strided((3,), (0,)).copy_(torch.ones(3))
torch.empty_strided((3,), (0,)).add_(1)
torch.sin(torch.ones(3), out=torch.empty_strided((3,), (0,)))
"""


def _outcome(lib: Any, line: str) -> Any:
    env: dict[str, Any] = {"torch": lib, "x": lib.tensor([0.5, 1.0, 2.0], requires_grad=True)}

    def quiet(code: str) -> None:
        with lib.no_grad():
            exec(code, env)

    env["quiet"] = quiet
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for code in before:
                exec(code, env)
            try:
                return _seen(lib, eval(last, env))
            except SyntaxError:
                exec(last, env)
                return "no value"
        except Exception as error:  # which class is what is compared
            return type(error).__name__


def _seen(lib: Any, t: Any) -> Any:
    if not isinstance(t, lib.Tensor):
        return t
    node = None if t.grad_fn is None else t.grad_fn.name().split("::")[-1]
    values = [round(float(v.real), 4) for v in t.detach().reshape(-1)]
    return str(t.dtype), tuple(t.shape), t.stride(), t.requires_grad, node, t._version, values


GROUPS = (MAKERS, SHAPES, HISTORIES, REFUSED, STRIDES)


def test_unrecorded_writes_refuse_by_their_full_names() -> None:
    x = torchlab.ones(3, requires_grad=True)
    text = r"aten::bitwise_xor\(\): functions with out=\.\.\. arguments don't support automatic"
    with pytest.raises(RuntimeError, match=text):
        torchlab.bitwise_xor(x, x, out=torchlab.ones(2, 3).unbind()[0])
    with pytest.raises(RuntimeError, match=r"aten::eye\(\): functions with out="):
        torchlab.eye(2, out=torchlab.ones(2, 2, requires_grad=True)[:])


@pytest.mark.parametrize("line", [line for g in GROUPS for line in g.strip().split("\n")])
def test_as_in_pytorch(line: str) -> None:
    assert _outcome(torchlab, line) == _outcome(torch, line)
