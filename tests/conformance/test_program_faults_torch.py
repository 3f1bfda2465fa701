"""Faults that random programs found, each kind as one fixed case: the call must end in torchlab as
in PyTorch, in a value (with its dtype, strides, gradient) or in an exception of the same class."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")

# Which of two errors is told: dimensions and empty lanes before types.
ORDER_OF_ERRORS = """
torch.zeros(2, 3, dtype=torch.complex64).max(dim=5)
torch.zeros(2, 0, dtype=torch.complex64).max(dim=1)
torch.zeros(2, 0, dtype=torch.complex64).max()
torch.zeros(2, 0, dtype=torch.complex64).amax(1)
torch.zeros(0, 2, dtype=torch.complex64).amax(1)
torch.aminmax(torch.zeros(0, 3, dtype=torch.complex64), dim=0)
torch.zeros(3, dtype=torch.complex64).sort(dim=5)
torch.zeros(3, dtype=torch.complex64).topk(9, 5)
torch.zeros(3, dtype=torch.complex64).kthvalue(9, 0)
torch.zeros(0, dtype=torch.complex64).median(0)
torch.zeros(0, dtype=torch.complex64).median()
torch.zeros(0, 3, dtype=torch.complex64).mode(1)
torch.zeros((), dtype=torch.complex64).cummax(0)
torch.zeros(3, dtype=torch.bool).logcumsumexp(4)
torch.zeros(3, dtype=torch.complex64).nansum(7)
torch.zeros(3, dtype=torch.complex64).unique_consecutive()
torch.searchsorted(torch.tensor(1.0), torch.zeros(3, dtype=torch.complex64))
torch.clamp_max(torch.zeros(2, dtype=torch.complex64), torch.zeros(3))
torch.logcumsumexp(torch.zeros(2), 5, out=torch.empty(0, dtype=torch.int64))
torch.index_select(torch.zeros(1), 0, torch.tensor([7]), out=torch.empty(0, dtype=torch.int64))
torch.take(torch.zeros(2), torch.tensor([7]), out=torch.empty(0, dtype=torch.float64))
torch.amax(torch.zeros(1), 3, out=torch.empty(0, dtype=torch.float64))
torch.max(torch.ones(2), 5, out=(torch.empty(0), torch.empty(0)))
torch.mv(torch.ones(()), torch.ones(2))
torch.ones(2, 2, 2).norm('fro', (0, 1, 5))
torch.lerp(torch.ones(2, 3).bool(), torch.ones(2, 2).bool(), 3, out=torch.empty(0))
torch.hypot(torch.ones(2, 3).long(), torch.ones(2, 2).long(), out=torch.empty(0))
torch.lt(torch.ones(2, 3) * 1j, torch.ones(2, 2) * 1j, out=torch.empty(0))
torch.clamp(torch.ones(2, 3) * 1j, torch.ones(2, 2), out=torch.empty(0))
torch.zeros(0, 3, dtype=torch.bool).lerp_(torch.zeros(0, 3, dtype=torch.bool), torch.tensor(2))
torch.zeros(3, dtype=torch.bool).lerp_(torch.zeros(3, dtype=torch.bool), torch.tensor(0.5))
torch.zeros(3, dtype=torch.bool).lerp(torch.zeros(3, dtype=torch.bool), torch.tensor(2))
torch.zeros(3).long().lerp(torch.zeros(3).long(), 1j)
torch.lerp(torch.ones(2).bool(), torch.ones(2).bool(), torch.tensor(2), out=torch.ones(2).bool())
~torch.ones(2)
~torch.ones(2, dtype=torch.complex64)
~torch.tensor([1, 0])
torch.ones(2).bitwise_not()
torch.clamp(torch.ones(2), torch.ones(2), 1)
torch.ones(2).clamp_(1, torch.ones(2))
torch.clamp(torch.ones(2), min=torch.ones(1), max=1)
torch.clamp(torch.ones(2), torch.tensor(0, dtype=torch.int64), 1)
torch.clamp(torch.ones(2), torch.tensor(0.5, requires_grad=True), 1)
torch.clamp(torch.ones(2).long(), 1j)
torch.clamp(torch.ones(2), 1j)
torch.clamp(torch.ones(2), 2 + 0j)
torch.ones(2).long().clamp_(max=1j)
torch.ones(2).clip(torch.ones(2), None, )
torch.clamp_min(torch.ones(2).bool(), True)
torch.ones(2).clamp_min_(None)
torch.clamp(torch.ones(2).bool(), torch.ones(2).bool())
torch.clamp(torch.ones(2), torch.ones(2), out=torch.empty(0, dtype=torch.float64))
torch.clamp(torch.ones(2), 1, 2, out=torch.empty(0, dtype=torch.float64))
torch.where(torch.ones(2).bool(), torch.ones(2), torch.ones(2), out=torch.empty(2).double())
"""
INDICES = """
torch.index_select(torch.ones(2, 3), 1, torch.tensor([7]))
torch.index_select(torch.ones(2, 3), 0, torch.tensor([7]))
torch.index_select(torch.ones(0, 3), 0, torch.tensor([0]))
torch.index_fill(torch.ones(2, 0), 0, torch.tensor([7]), 1)
torch.index_fill(torch.ones(2, 3), 1, torch.tensor([0], dtype=torch.int32), 1)
torch.index_fill(torch.ones(2, dtype=torch.uint8), 0, torch.tensor([0]), torch.tensor(-2.5))
torch.index_copy(torch.ones(2, 0), 0, torch.tensor([7]), torch.ones(1, 0))
torch.index_copy(torch.ones(2, 2), 1, torch.tensor([1, 2]), torch.ones(2))
torch.index_copy(torch.ones(()), 0, torch.tensor([0, 0]), torch.ones(2))
torch.index_add(torch.ones(2, 3, 2), 1, torch.tensor([7]), torch.ones(2, 1, 2))
torch.index_add(torch.ones(2, 3), 1, torch.tensor([7]), torch.ones(2, 1))
torch.index_add(torch.ones(2, 3), 1, torch.tensor([7]), torch.ones(2, 1), alpha=2)
torch.index_add(torch.ones(2), 0, torch.tensor([1, 1]), torch.ones(()))
torch.index_reduce(torch.ones(2), 0, torch.tensor([7]), torch.ones(1), 'prod')
t = torch.zeros(3); t[torch.tensor(True)] = torch.tensor(2); t
t = torch.zeros(3); t[None, True] = torch.tensor(2); t
t = torch.zeros(3, 3); t[True, 2] = torch.tensor(2); t
t = torch.zeros(()); t[True] = torch.tensor([2]); t
t = torch.zeros(3, dtype=torch.uint8); t[torch.tensor([True, False, True])] = torch.tensor(-2.5); t
t = torch.tensor([1, 0]); t[t] = 5; t
t = torch.tensor([1, 0]); t[torch.tensor([0, 1])] = t; t
t = torch.tensor([True, True]); t[t] = torch.tensor([True, True]); t
t = torch.ones(1); t[torch.tensor([True])] = t; t
t = torch.zeros(1).expand(3); t[torch.tensor([1])] = 2; t
t = torch.zeros(1).expand(3); t.masked_fill_(torch.tensor([True, False, True]), 2)
t = torch.zeros(1).expand(3); t[:] = 2; t
torch.ones(2, dtype=torch.uint8).masked_fill(torch.tensor([True, False]), torch.tensor(-1.0))
torch.ones(0, 0).index_fill_(0, torch.tensor([0, 0]), 0)
torch.ones(2, 0, 3)[:, :, :0].index_fill_(1, torch.tensor([7]), 0)
torch.ones(3).scatter_(0, torch.tensor([], dtype=torch.int64), 1j, reduce='add')
torch.ones(3).scatter(0, torch.tensor([], dtype=torch.int64), 1e300, reduce='multiply')
torch.ones(3).scatter_(0, torch.tensor([0]), 1j, reduce='multiply')
torch.ones(3, 2).long().index_fill(-4, torch.tensor([0, 0]), float('inf'))
torch.ones(3, 2).byte().index_fill_(5, torch.tensor([0]), -1.5)
torch.ones(3).index_fill(0, torch.tensor([0], dtype=torch.int32), torch.tensor([1, 2]))
torch.ones(3).long().index_fill(0, torch.tensor([7]), torch.tensor(1e40, dtype=torch.float64))
torch.ones(0).index_add_(0, torch.tensor([0]), torch.ones(1), alpha=0.5)
torch.ones(0).long().index_add_(0, torch.tensor([0]), torch.ones(1).long(), alpha=1j)
torch.ones(1, 2).long().index_add(1, torch.tensor([]).long(), torch.ones(1, 0).long(), alpha=1e99)
torch.ones(0, 0, 1).index_copy(1, torch.tensor([0, 1]), torch.ones(0, 2, 1))
torch.ones(3).scatter(2, torch.tensor([0]), 1, reduce='x')
torch.ones(3).byte().scatter(2, torch.tensor([0]), 1j, reduce='add')
torch.ones(3).long().scatter(0, torch.tensor([0]), torch.tensor(2.5), reduce='add')
torch.ones(1).scatter_(0, torch.tensor([0, 0]), torch.tensor(2.5), reduce='add')
torch.ones(3).scatter(0, torch.tensor([0]), 2.5, reduce='add')
torch.ones(3).scatter_reduce(2, torch.tensor([0]), torch.ones(1), 'x')
torch.ones(3).scatter_reduce(0, torch.tensor([0]), torch.ones(1).bfloat16(), 'mean')
torch.ones(3).bfloat16().scatter_reduce(0, torch.tensor([0]), torch.ones(1).bfloat16(), 'sum')
torch.ones(3).cfloat().scatter_reduce(0, torch.tensor([]).long(), torch.ones(0).cfloat(), 'amax')
torch.ones(3).cfloat().scatter_reduce(0, torch.tensor([0]), torch.ones(1).cfloat(), 'amax')
torch.ones(3).bool().scatter_reduce(0, torch.tensor([]).long(), torch.ones(0).bool(), 'mean')
torch.ones(3).bool().index_reduce(0, torch.tensor([0]), torch.ones(1).bool(), 'amin')
torch.ones(3, 2).cfloat().index_reduce(0, torch.tensor([0]), torch.ones(1, 2).cfloat(), 'amax')
torch.ones(3).bfloat16().index_reduce(0, torch.tensor([5]), torch.ones(1), 'amax')
"""
OUT = """
torch.argmax(torch.ones(3, 3, requires_grad=True), 0, out=torch.empty(0, dtype=torch.int64))
torch.gt(torch.ones(3), 2, out=torch.empty(3, requires_grad=True))
torch.floor_divide(torch.ones(3, requires_grad=True), 2, out=torch.empty(3))
torch.hypot(torch.ones(3, requires_grad=True), 2, out=torch.empty(3))
torch.cumsum(torch.tensor([1, 2]), 0, out=torch.empty(0, dtype=torch.bool))
torch.cumprod(torch.tensor([1, 2]), 0, dtype=torch.bool)
torch.tensor([True]).cumsum_(0)
torch.tensor([200, 100], dtype=torch.uint8).cumsum_(0)
torch.tensor([1.5, 2.5]).cumsum_(0, dtype=torch.int64)
torch.logsumexp(torch.tensor([0, 0]), 0, out=torch.empty(0, dtype=torch.float64))
torch.logsumexp(torch.tensor([0j, 0]), 0, out=torch.empty(0))
torch.lerp(torch.zeros(2), torch.ones(2), 3, out=torch.empty(2, dtype=torch.float64))
torch.lerp(torch.zeros(2), torch.ones(2), torch.ones(2), out=torch.empty(2, dtype=torch.float64))
torch.mean(torch.ones(3), 0, dtype=torch.float64, out=torch.empty(0))
torch.mean(torch.ones(3, dtype=torch.complex64), 0, out=torch.empty(0))
torch.float_power(torch.ones(2), 2, out=torch.empty(0))
torch.all(torch.ones(2), 0, out=torch.empty(0))
torch.any(torch.ones(2, dtype=torch.uint8), 0, out=torch.empty(0, dtype=torch.bool))
torch.sort(torch.ones(2), 0, out=(torch.empty(0).double(), torch.empty(0, dtype=torch.int64)))
torch.tril(torch.zeros(1, 1), out=torch.empty(0, dtype=torch.float64))
"""
PRODUCTS = """
torch.bmm(torch.ones(2, 2, 0), torch.ones(2, 0, 2, dtype=torch.float64))
torch.bmm(torch.ones(2, 2, 0, dtype=torch.float16), torch.ones(2, 0, 2, dtype=torch.bool))
torch.addmm(torch.zeros(2).bool(), torch.ones(2, 0).bool(), torch.ones(0, 2).bool())
torch.addmm(torch.ones(2).long(), torch.ones(2, 0).long(), torch.ones(0, 2).long(), beta=1.0)
torch.einsum('i,i', torch.tensor([True]), torch.tensor([True]))
torch.einsum('ij,ij->i', torch.ones(3, 1), torch.ones(3, 1))
torch.matmul(torch.tensor([[float('nan')], [1.0]]), torch.tensor([0.0]))
torch.matmul(torch.tensor([[-0.0], [1.0]]), torch.tensor([[2.0]])).signbit()
torch.mv(torch.tensor([[-0.0], [1.0]]), torch.tensor([2.0])).signbit()
torch.matmul(torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, 5))
torch.matmul(torch.ones(2, 3, requires_grad=True), torch.ones(1, 3, 1))
torch.matmul(torch.ones(1, 3, 2, requires_grad=True), torch.ones(2, 2, 1))
torch.matmul(torch.ones(3), torch.ones(4, 5, 3).mT)
torch.bmm(torch.ones(0, 1, 2, requires_grad=True), torch.ones(0, 2, 2).byte())
torch.bmm(torch.ones(2, 1, 0, requires_grad=True), torch.ones(2, 0, 2).byte())
torch.bmm(torch.ones(2, 1, 0, requires_grad=True), torch.ones(2, 0, 2).double())
torch.bmm(torch.ones(2, 1, 0).byte(), torch.ones(2, 0, 2, requires_grad=True))
torch.matmul(torch.ones(0, 2, 2, requires_grad=True), torch.ones(3, 0, 2, 2).byte())
torch.ones(1, 3, 1, 1).to(memory_format=torch.channels_last) @ torch.zeros(1, 0).long()
torch.ones(1, 3, 1, 1) @ torch.zeros(1, 0).long()
torch.ones(1, 3, 1, 2).to(memory_format=torch.channels_last) @ torch.ones(2, 2)
torch.ones(3, 1, 2) @ torch.ones(2, 2)
torch.tensor(True).expand(3).inner(torch.tensor(True).expand(3))
torch.ones(3).bool().inner(torch.ones(3).bool())
torch.ones(1).bool().inner(torch.ones(1).bool())
torch.tensordot(torch.ones(4, 3)[::2], torch.ones(2, 3), ([0, 1], [0, 1]))
torch.tensordot(torch.ones(4).bool()[::2], torch.ones(4).bool()[::2], 1)
torch.tensordot(torch.ones(4).half()[::2], torch.ones(4).bfloat16()[::2], 1)
torch.tensordot(torch.ones(3), torch.ones(3).double(), ([5], [0]))
torch.ones(0, 0, 2).long() @ torch.ones(1, 2, 1, dtype=torch.complex128, requires_grad=True)
torch.ones(1, 2, 3, requires_grad=True) @ torch.ones(0, 3, 2)
torch.ones(0, 1, 0).bool() @ torch.ones(1, 0, 1, requires_grad=True)
torch.addmm(torch.ones(0), torch.ones(2, 3), torch.ones(3, 0), beta=1j)
torch.addmm(torch.ones(0), torch.ones(2, 3), torch.ones(3, 0), alpha=1j)
torch.addmm(torch.ones(2), torch.ones(2, 0), torch.ones(0, 2), alpha=1j)
torch.addmm(torch.ones(2), torch.ones(2, 0), torch.ones(0, 2), beta=1j)
torch.addmm(torch.ones(2).half(), torch.ones(2, 0).half(), torch.ones(0, 2).half(), beta=0.5)
torch.addmm(torch.ones(1), torch.ones(2, 1), torch.ones(1, 2), out=torch.empty(0).half())
torch.baddbmm(torch.ones(2), torch.ones(2, 2, 0), torch.ones(2, 0, 2).long(), beta=0.5)
torch.baddbmm(torch.ones(2), torch.ones(2, 2, 0), torch.ones(2, 0, 2).half(), beta=0.5)
torch.baddbmm(torch.ones(2).bool(), torch.ones(2, 2, 0).bool(), torch.ones(2, 0, 2).bool())
torch.baddbmm(torch.ones(2).bool(), torch.ones(0, 2, 2).bool(), torch.ones(0, 2, 2).bool())
torch.addbmm(torch.ones(2), torch.ones(2, 2, 0), torch.ones(2, 0, 2), beta=3, alpha=1j)
torch.addbmm(torch.ones(2).bool(), torch.ones(2, 2, 0).bool(), torch.ones(2, 0, 2).bool(), beta=0)
torch.vdot(torch.ones(2).half(), torch.ones(2))
torch.vdot(torch.ones(2).bool(), torch.ones(2).bool(), out=torch.empty(0))
torch.dist(torch.ones(2).int(), torch.zeros(2).bfloat16())
torch.dist(torch.ones(()).half(), torch.zeros(2).long())
torch.dist(torch.ones(2).double(), torch.zeros(()).cfloat())
torch.dist(torch.ones(2).bool(), torch.zeros(2))
torch.dist(torch.ones(1, 3), torch.zeros(2))
torch.meshgrid(torch.ones(2), torch.ones(3).long(), indexing='ij')
torch.cartesian_prod(torch.ones(2), torch.ones(3).long())
torch.tensor(True).trace()
torch.nansum(torch.ones(2), 0, dtype=torch.int64)
torch.nansum(torch.ones(2).long(), 0, dtype=torch.complex64)
torch.logsumexp(torch.ones(2), None)
"""
# Which memory may be written from which.
OVERLAPS = """
t = torch.ones(1, dtype=torch.complex128); t.real.copy_(t)
t = torch.ones(1, dtype=torch.complex128); t.imag.add_(t.real)
t = torch.ones(3, dtype=torch.complex64); t.real.copy_(t)
t = torch.ones(3, dtype=torch.complex64); torch.view_as_real(t).copy_(t.real[:, None])
t = torch.ones(4, dtype=torch.complex64); t.conj()[1:].copy_(t[:-1])
t = torch.ones(4, dtype=torch.complex64); t.copy_(t.conj())
t = torch.arange(4.0); t[1:].copy_(t[:-1])
t = torch.tensor(1.5); t.as_strided((1,), (0,)).copy_(t)
t = torch.tensor(1); t.unfold(0, 1, 2).copy_(t)
t = torch.ones(1, 1); t.view(-1).copy_(t[0])
t = torch.arange(4.0); t[::2].copy_(t[1::2])
t = torch.arange(4.0).reshape(2, 2); t.copy_(t.t())
t = torch.ones(4); t.view(torch.int32).copy_(t)
t = torch.ones(4); t.copy_(t.view(torch.int32))
t = torch.ones(4); t.view(torch.int32)[:2].copy_(t[1:3])
t = torch.ones(4).long(); torch.add(t[:2], 1, out=t.view(torch.int32)[:2]).sum()
"""
# The steps of dimensions of size 1.
ODD_STEPS = """
t = torch.ones(1, 2, 3).bfloat16().transpose(0, 2).unfold(0, 3, 3); torch.tensor((t + 1).stride())
t = torch.ones(1, 3).half().transpose(0, 1)[None]; torch.tensor((t * torch.tensor(2)).stride())
t = torch.ones(1, 3, 2).half().transpose(0, 1); torch.tensor(torch.lerp(t, t, 0.5).stride())
t = torch.ones(1, 3, 2).transpose(0, 1); torch.tensor((t * t).stride())
"""
VALUES = """
torch.tensor([-0.0, 1.0]).cumsum(0).signbit()
torch.tensor([[-0.0]]).sum(1).signbit()
torch.tensor(-0.0).sum().signbit()
torch.tensor([-0.0]).mean().signbit()
torch.tensor([2, 3]) ** torch.tensor(-1)
torch.tensor(True) ** -2
t = torch.arange(15.0).reshape(5, 3).t(); t.diagonal().neg_(); t
torch.pow(torch.tensor([-float('inf'), -1.0, 4.0]), torch.tensor(0.5))
torch.ones(2) * torch.tensor(1j, dtype=torch.complex128)
torch.ones(2, dtype=torch.float64) * torch.tensor(1j, dtype=torch.complex64)
torch.add(torch.tensor([True]).expand(2, 2), torch.ones(2, 2).t())
torch.angle(torch.ones(2, 3, dtype=torch.complex64).t())
2 ** torch.ones(2, 3).t()
torch.lerp(torch.zeros(2).long(), torch.ones(2).long(), torch.tensor(0.5))
torch.lerp(torch.zeros(2), torch.ones(2), 1 + 0j)
torch.lerp(torch.zeros(2), torch.ones(2), 1j)
torch.lerp(torch.zeros(2).half(), torch.ones(2).half(), 1 + 0j)
torch.lerp(torch.zeros(2).half(), torch.ones(2).half(), 1j)
torch.lerp(torch.zeros(2).bfloat16(), torch.ones(2).bfloat16(), 1e300)
torch.lerp(torch.zeros(2), torch.ones(2), 1e300)
torch.nn.functional.leaky_relu(torch.ones(2), 1j)
torch.nn.functional.threshold(torch.ones(2), 1e300, 0)
torch.logcumsumexp(torch.tensor([2.875 - 2j, 2.875 + 2j], dtype=torch.complex128), 0).imag.sign()
torch.logcumsumexp(torch.tensor([2.875 + 2j, 2.875 - 2j], dtype=torch.complex128), 0).imag.sign()
torch.logcumsumexp(torch.tensor([complex('nan+0j'), 1]), 0)
torch.logcumsumexp(torch.tensor([complex('-inf+2j'), complex('-inf+1j'), 1]), 0)
torch.logcumsumexp(torch.tensor([complex('inf+3j'), complex('inf+1j'), 2]), 0)
torch.logcumsumexp(torch.tensor([complex('-inf+nanj'), 2]), 0)
torch.logcumsumexp(torch.tensor(complex('nan+0j')), 0)
x = torch.ones(6, 3, 3, 2).to(memory_format=torch.channels_last); torch.cat([x, torch.ones(0)])
torch.pow(torch.zeros(2), torch.tensor([-2.875 - 0.5j, -1])).real
torch.pow(torch.zeros(2, dtype=torch.complex128), torch.tensor([2 + 1j, 1j])).real.abs()
torch.tensor([complex('inf+nanj'), 1]).norm(2, -1, keepdim=True)
torch.tensor([[complex('inf+nanj'), complex('nan')], [2, 3]]).norm(2, 1)
torch.arange(12.0).reshape(3, 4)[:, 1].neg_()
torch.sigmoid(torch.arange(12.0).reshape(3, 4)[:, 1], out=torch.zeros(3, 2)[:, 0]) > 0.75
torch.arange(12.0).reshape(3, 4)[:, 1].sub(4).sigmoid_() > 0.5
t = torch.arange(12.0).reshape(3, 4) - 4; t[:, 1].sigmoid_(); t[:, 1] > 0.5
torch.tensor([7], dtype=torch.uint8) ** 300
torch.tensor([7], dtype=torch.int8).pow_(200)
torch.tensor([7], dtype=torch.uint8) ** 3
"""
GRADIENTS = """
torch.xlogy(x, 0).tanh()
torch.special.xlog1py(x, torch.tensor(-1.0)).tanh()
x.norm(0)
torch.atan2(x, torch.zeros(3))
torch.atan2(torch.zeros(3), x)
(x * 1).__setitem__(slice(None), 2)
x[:] * 2
"""


def _outcome(lib: Any, code: str) -> Any:
    *before, last = code.split("; ")
    env: dict[str, Any] = {"torch": lib}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for line in before:
                exec(line, env)
            results = eval(last, env)
        except Exception as error:  # which class is what is compared
            return type(error).__name__
    parts = results if isinstance(results, tuple) else (results,)
    return [_seen(t) for t in parts]


def _seen(t: Any) -> Any:
    steps = [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] if t.numel() else None
    node = None if t.grad_fn is None else t.grad_fn.name().split("::")[-1]
    made = (str(t.dtype), tuple(t.shape), steps, t.requires_grad, node, t._base is None)
    return (*made, str(t.detach().resolve_conj().tolist()))


def _lines(*texts: str) -> list[str]:
    return [line for text in texts for line in text.strip().split("\n")]


@pytest.mark.parametrize(
    "code", _lines(ORDER_OF_ERRORS, INDICES, OUT, PRODUCTS, OVERLAPS, ODD_STEPS, VALUES)
)
def test_ends_as_in_pytorch(code: str) -> None:
    assert _outcome(torchlab, code) == _outcome(torch, code)


@pytest.mark.parametrize("code", _lines(GRADIENTS))
def test_gradient_as_in_pytorch(code: str) -> None:
    found = []
    for lib in (torchlab, torch):
        x = lib.tensor([0.0, 0.375, -1.0], requires_grad=True)
        result = eval(code, {"torch": lib, "x": x})
        if result is not None:
            result.sum().backward()
        found.append(str(None if x.grad is None else x.grad.tolist()))
    assert found[0] == found[1]
