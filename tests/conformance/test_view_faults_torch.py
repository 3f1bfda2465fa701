"""What views, leaves and their memory do when something is written: each line ends in torchlab as
in PyTorch. The kinds of faults that random programs found (see `programs.py`).

A line is a program; the value of its last statement, or the class of the exception, is compared.
`quiet(...)` runs a statement under no_grad.
"""

# ruff: noqa: E501 (a program is a line)
from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")

# A view renews its history after any write, recorded or not, when somebody asks.
BEHIND = """
x = torch.zeros(3); v = x[:]; x.add_(1); x.requires_grad_(); v
x = torch.zeros(3, requires_grad=True); v = x[:]; x.detach().add_(1); v
x = torch.zeros(3, requires_grad=True); v = x[:]; x.data.add_(1); v
x = torch.zeros(3, requires_grad=True); quiet("v = x[:]"); quiet("x.add_(1)"); v.requires_grad
x = torch.zeros(3, requires_grad=True); quiet("v = x[:]"); quiet("x.add_(1)"); v.is_leaf
x = torch.zeros(3, requires_grad=True); quiet("v = x[:]"); quiet("x.add_(1)"); v * 2
x = torch.zeros(3, requires_grad=True) * 1; quiet("v = x[:]"); quiet("v.add_(1)"); v + 1
x = torch.zeros(3, requires_grad=True) * 1; quiet("v = x[:]"); v.add_(1)
x = torch.zeros(3, requires_grad=True) * 1; v = x[:]; quiet("x.add_(1)"); v[0]
x = torch.zeros(4, requires_grad=True) * 1; v = x[:2]; w = v[0]; quiet("w.add_(1)"); v
x = torch.zeros(4, requires_grad=True) * 1; v = x[:2]; x.detach_(); x.add_(1); v
x = torch.zeros(4); v = x[:2]; x.requires_grad_(); v * 2
x = torch.zeros(4); v = x[:2]; x.requires_grad_(); v.is_leaf
x = torch.zeros(4, requires_grad=True); v = x[:2]; x.requires_grad_(False); v
x = torch.zeros(2, dtype=torch.complex64, requires_grad=True); v = torch.view_as_real(x); quiet("x.add_(1)"); v
x = torch.zeros(3, requires_grad=True) * 1; v = x[:]; v.retain_grad(); quiet("x.add_(1)"); (v * 2).sum().backward(); v.grad
x = torch.ones(2, dtype=torch.complex64, requires_grad=True); quiet("v = x.conj()"); quiet("x.zero_()"); v.detach()
x = torch.tensor(3.0); v = x[None]; v.data = torch.ones(()); x.requires_grad_(); quiet("v.transpose_(0, -1)"); v.is_leaf
x = torch.tensor(3.0); v = x[None]; v.data = torch.ones(1); x.requires_grad_(); quiet("v.add_(1)"); v
x = torch.tensor(3.0); v = x[None]; v.data = torch.ones(1); x.requires_grad_(); v.resize_(2)
x = torch.tensor(3.0); v = x[None]; x.add_(1); v.data = torch.ones(1); x.requires_grad_(); v
x = torch.ones(2, dtype=torch.complex64, requires_grad=True); quiet("v = x.conj()"); (v - torch.tensor([1, 2])).requires_grad
"""
# Where a view on the way is one of another type, its history repeats the steps from the base.
WAYS = """
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.real; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.real[0]; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = torch.view_as_real(x[0]); x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = torch.view_as_real(x)[0]; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.conj(); x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.conj()[0]; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x[0][1:].conj().conj(); x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.conj().imag; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.mH; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.real; v.unsqueeze(0).clamp_(max=1); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.conj()[0]; v.mul_(2); (names(v), names(x))
x = torch.ones(2, 3, dtype=torch.complex64); v = x.real; x.mul_(torch.ones(2, 3, dtype=torch.complex64, requires_grad=True)); names(v)
x = torch.ones((), dtype=torch.complex64, requires_grad=True); v = x.adjoint()[None]; quiet("v[0,] = v"); names(v)
x = torch.ones(2, 2, requires_grad=True) * 1; v = torch.view_as_complex(x[:1])[0]; x.mul_(2); names(v)
x = torch.ones(2, 3, requires_grad=True) * 1; v = x._neg_view()[0]; x.mul_(2); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.conj().mT.imag; x.mul_(2); (v * v).sum().backward(); names(v)
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True); v = x.conj().mT.imag; quiet("x.mul_(2j)"); (v * v).sum().backward(); x.grad
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True) * 1; v = x.conj().unbind(0)[0].conj(); x.mul_(2); v.grad_fn
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True); v = torch.view_as_real(x); quiet("v.unsqueeze_(-1)"); v.sum().backward()
x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True); v = x.real; quiet("v.unsqueeze_(-1)"); v.sum().backward()
x = torch.ones(2, 3, requires_grad=True); v = x[0]; quiet("v.unsqueeze_(-1)"); v.sum().backward(); x.grad
"""
# Who asks a view for its history, and who does not.
ASKED = """
x = torch.zeros(3, requires_grad=True); quiet("v = x[:]"); quiet("x.add_(1)"); v.requires_grad_(False)
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.requires_grad = True
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.output_nr
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); repr(v)
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.int()
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.double()
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); torch.zeros(1, dtype=torch.int32).copy_(v)
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.isfinite()
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.isinf()
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.isclose(v)
x = torch.zeros(3, requires_grad=True); v = x.unbind()[0].view(-1); quiet("x.add_(1)"); v.allclose(v)
x = torch.zeros(2, 2, dtype=torch.int64).unbind()[0].view(-1); x.copy_(torch.ones(2, requires_grad=True))
x = torch.zeros(2, 2, dtype=torch.int64).unbind()[0].view(-1); x[None] = torch.ones((), requires_grad=True)
x = torch.zeros(2, 2, dtype=torch.int64).unbind()[0].view(-1); x.masked_fill_(x == 0, torch.ones((), requires_grad=True))
x = torch.zeros(2, 2, dtype=torch.int64).unbind()[0].view(-1); x.bernoulli_(torch.ones(2, requires_grad=True))
"""
SEVERAL = """
x = torch.zeros(3, requires_grad=True) * 1; a, b, c = x.unbind(); quiet("x.add_(1)"); a.grad_fn
x = torch.zeros(3, requires_grad=True) * 1; a, b, c = x.unbind(); quiet("x.add_(1)"); a.requires_grad
x = torch.zeros(3, requires_grad=True) * 1; a, b, c = x.unbind(); quiet("a.add_(1)"); b.sin()
x = torch.zeros(3, requires_grad=True) * 1; a, b, c = x.unbind(); b.add_(1)
x = torch.zeros(3); a, b, c = x.unbind(); a.add_(1); x.requires_grad_(); b.is_leaf
x = torch.zeros(3); a, b, c = x.unbind(); x.mul_(torch.ones(3, requires_grad=True)); a + 1
x = torch.zeros(4, requires_grad=True) * 1; a, b = x.split(2); d = a[0]; x.add_(1); d.grad_fn
x = torch.zeros(4, requires_grad=True) * 1; a, b = x.chunk(2); quiet("a.add_(1)"); a.grad_fn
x = torch.zeros(4, requires_grad=True) * 1; a, b = x.split(2); quiet("f = a[0]"); f
"""
LAYOUT = """
x = torch.zeros(2, 3, requires_grad=True) * 1; v = x[0]; v.unsqueeze_(0); v
x = torch.zeros(2, 3, requires_grad=True) * 1; v = x[0]; x.add_(1); v.unsqueeze_(0); v.grad_fn.next_functions[0][0].name()
x = torch.zeros(2, 3, requires_grad=True) * 1; v = x[0]; v.as_strided_((2,), (1,)); v
x = torch.zeros(2, 3, requires_grad=True) * 1; v = x[0]; v.unsqueeze_(0); v.retain_grad(); v.squeeze_(); v.retains_grad
"""
LEAVES = """
x = torch.ones(4, requires_grad=True); y = (x * 2).sum(); quiet("x.set_(torch.zeros(2))"); y.backward(); x.grad
x = torch.ones(4, requires_grad=True); y = (x * 2).sum(); quiet("x.set_(torch.zeros(2))"); z = (x * 3).sum(); z.backward(); x.grad
x = torch.ones(2, 1, requires_grad=True); y = (x * 2).sum(); quiet("x.squeeze_()"); y.backward(); x.grad
x = torch.ones(2, 1, requires_grad=True); y = (x * 2).sum(); quiet("x.squeeze_()"); y = (x * 2).sum(); y.backward()
x = torch.ones(3, requires_grad=True); y = (x * 2).sum(); quiet("x.unsqueeze_(0)"); y.backward(); x.grad
x = torch.ones(3, requires_grad=True); y = (x * 2).sum(); x.data = torch.ones(2, 3); y.backward(); x.grad
x = torch.ones(3, requires_grad=True); y = x.sum(); x.data = torch.ones(5); y.backward()
x = torch.ones(3, requires_grad=True); y = x.sum(); x.data = torch.ones(5); torch.autograd.grad(y, x)[0]
x = torch.ones(3, requires_grad=True); y = x * x; x.data = torch.zeros(3); y.sum().backward(); x.grad
x = torch.ones(3, requires_grad=True); y = x * 1; x.data = torch.ones(3, dtype=torch.float64); y.sum().backward(); x.grad
x = torch.ones(3, requires_grad=True); x.grad = torch.ones(3); x.data = torch.ones(5); (x * 2).sum().backward()
x = torch.zeros(2, 3, requires_grad=True); y = (x * 3).sum(); quiet("torch.add(torch.ones(3), 1, out=x)"); y.backward()
x = torch.ones(1, requires_grad=True); y = x.sign(); quiet("x.squeeze_()"); x.masked_select(torch.ones(2, 3) > 0).sum().backward(); x.grad
x = torch.ones(1, requires_grad=True); y = x.sign(); quiet("x.squeeze_()"); torch.ones(3).masked_fill(torch.ones(3) > 0, x).sum().backward()
x = torch.ones(1, requires_grad=True); y = x.sign(); quiet("x.squeeze_()"); torch.ones(3).index_copy(0, torch.tensor([0]), x).sum().backward(); x.grad
x = torch.zeros(5, 3, 0, requires_grad=True); y = x * 2; quiet("x.transpose_(-2, 2)"); y.backward(torch.ones(5, 3, 0)); x.grad.shape
x = torch.zeros(2, 0, requires_grad=True); y = x * 2; quiet("x.unsqueeze_(-2)"); y.backward(torch.ones(2, 0))
x = torch.zeros(2, 0, requires_grad=True); y = x * 2; quiet("x.t_()"); quiet("x.unsqueeze_(-1)"); y.backward(torch.ones(2, 0)); x.grad.shape
x = torch.ones(3, requires_grad=True); x.set_(torch.zeros(2))
x = torch.ones(3, requires_grad=True) * 1; x.set_(torch.ones(2)); x
"""
MEMORY = """
x = torch.zeros(4); x.add_(1); x.data._version
x = torch.zeros(4); x.add_(1); x.data = torch.ones(4); x._version
x = torch.zeros(4); v = x[:]; x.data = torch.ones(5); x.add_(1); v._version
x = torch.zeros(3); y = torch.zeros(2); x.set_(y); x.add_(1); (x._version, y._version)
x = torch.ones(4); v = x[:2]; y = x.data; y.resize_(10); y.fill_(3); (x.tolist(), v.tolist(), x._version)
x = torch.ones(4); y = x.data; x.untyped_storage() is y.untyped_storage()
x = torch.ones(4); s = x.untyped_storage(); s.resize_(0); s.resize_(16); x.fill_(2); x
x = torch.ones(4); y = x.data; x.share_memory_(); x.fill_(4); (y.is_shared(), y.tolist())
x = torch.zeros(3); x.untyped_storage().fill_(0); x._version
"""
# A view that gets other memory (`set_`, `.data =`) stays a view of its base.
OTHER_MEMORY = """
x = torch.ones(4); v = x[:2]; v.set_(torch.zeros(2)); v._base is x
x = torch.ones(4); v = x[:2]; v.set_(); v._base is x
x = torch.ones(4); v = x[:2]; v.set_(torch.zeros(2)); w = v[1:]; w._base is x
x = torch.ones(4, requires_grad=True) * 1; v = x[:2]; v.set_(torch.zeros(2)); v
x = torch.ones(4, requires_grad=True) * 1; v = x[:2]; v.set_(); x
x = torch.ones(4, requires_grad=True) * 1; v = x[:2]; quiet("v.set_(torch.zeros(2))"); v
x = torch.ones(4); v = x[:2]; v.set_(torch.zeros(2)); x.requires_grad_(); v.requires_grad
x = torch.ones(4); v = x[:2]; v.set_(torch.zeros(2)); v.mul_(torch.ones(2, requires_grad=True)); x
x = torch.ones(4); v = x[:2]; x.requires_grad_(); v.set_(torch.zeros(2))
x = torch.ones(4, requires_grad=True) * 1; v = x[:2]; x.set_(torch.zeros(3)); v
x = torch.ones(4, requires_grad=True) * 1; v = x[:2]; x.data = torch.zeros(3); x.add_(1); v
x = torch.ones(4, requires_grad=True); v = x[:2]; x.data = torch.zeros(3); quiet("x.add_(1)"); v
x = torch.ones(4, requires_grad=True); y = x * 1; v = y[1:3]; quiet("y.set_(torch.zeros(4))"); v.sum().backward(); x.grad
x = torch.ones(1)[:-1].requires_grad_(); y = torch.stack([x, x]); torch.eq(y, 0.5, out=x); y.sum().backward(); x.grad.shape
x = torch.ones(1)[:-1].requires_grad_(); y = torch.stack([x, x]); torch.eq(y, 0.5, out=x); (x * 1).sum().backward()
x = torch.ones(2, 3)[:].requires_grad_(); y = x * 1; quiet("x.t_()"); y.sum().backward(); x.grad
"""
# `x.data` is the same memory under another version counter.
OVERLAPS = """
x = torch.ones(4); x[:3].add_(x.data[1:])
x = torch.ones(4); x.data[:3].add_(x[1:])
x = torch.ones(4); x.add_(x.data)
x = torch.ones(4); x.data.add_(x)
x = torch.ones(4); x[:2].add_(x.data[2:])
x = torch.ones(4, 4); x.mul_(x.data[1:2])
x = torch.ones(4); y = torch.ones(4); x.data = y; x[:3].add_(y[1:])
x = torch.ones(4); y = torch.ones(4); x.set_(y); y[:3].add_(x[1:])
x = torch.ones(()).expand(1); x.view(-1).copy_(x)
x = torch.ones(1, 3)[:, 0]; x.view(-1).add_(x)
x = torch.ones(1, 3); x.add_(x.view(3))
x = torch.ones(3, 1); x.add_(x.view(1, 3).t())
"""
HISTORIES = """
x = torch.ones(2, requires_grad=True); torch.lcm(torch.tensor([1, 2]), torch.tensor([1, 2]), out=x)
x = torch.ones(2, requires_grad=True) * 1; torch.lcm(torch.tensor([1, 2]), torch.tensor([1, 2]), out=x); x
x = torch.ones(2, requires_grad=True); 2 ** x
x = torch.ones(2, requires_grad=True); 2 - x
x = torch.ones(2, requires_grad=True); torch.rsub(x, x)
x = torch.ones(2, requires_grad=True); (2 % x).sum().backward()
x = torch.ones(2, requires_grad=True); torch.xlogy(2, x)
x = torch.ones(2, requires_grad=True); torch.div(x, 2, rounding_mode=None)
x = torch.ones(2, requires_grad=True); (x * 0.5).asinh_().sum().backward()
x = torch.ones(2, requires_grad=True); torch.ldexp(x, x)
x = torch.ones(2, requires_grad=True); torch.t_copy(x[None])
x = torch.ones(2, requires_grad=True); y = x * 1; y.scatter_(0, torch.tensor([0]), 3, reduce="add"); y
x = torch.ones(3, requires_grad=True); y = x.cummax(0)[0]; quiet("x.ne_(1)"); y.sum().backward()
x = torch.ones(3, requires_grad=True); y = x.take(torch.tensor([0])); quiet("x.zero_()"); y.sum().backward()
x = torch.ones(3, requires_grad=True); y = x ** torch.tensor([1, 2, 3]); y.sin_(); y.sum().backward()
x = torch.ones(3, requires_grad=True); y = x * 2; z = y.abs(); y.detach_(); z.sum().backward()
x = torch.ones(3, requires_grad=True); quiet("v = x[:]"); w = torch.ones(3) * 2; y = v * w; w.add_(1); y.sum().backward()
x = torch.zeros(0, dtype=torch.complex64, requires_grad=True); torch.nn.functional.silu(x)
x = torch.tensor([1, 2]); x.masked_fill(x > 1, torch.tensor(1.5, requires_grad=True))
x = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True); x.conj().reshape(4)
x = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True); x.conj().t().reshape(4)
x = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True); x.conj().flatten()
x = torch.ones(3, requires_grad=True) * 1; x.conj_physical_(); x
x = torch.ones(3, dtype=torch.complex64, requires_grad=True) * 1; x.conj_physical_(); x
x = torch.ones(3); x.conj_physical_(); x._version
"""
BACKWARD = """
x = torch.ones(2, requires_grad=True); y = torch.lerp(x, torch.ones(2), 0.3).sum(); y.backward(); y.backward(); x.grad
x = torch.ones(2, requires_grad=True); y = torch.lerp(x, torch.ones(2), torch.tensor(0.3)).sum(); y.backward(); y.backward()
x = torch.tensor([1.0, -2.0], requires_grad=True); torch.autograd.grad(x.relu(), x, torch.ones(2), create_graph=True)[0]
x = torch.ones(2, requires_grad=True); exec("with torch.inference_mode(): x.detach_()"); x.requires_grad
x = torch.ones(2, requires_grad=True) * 1; v = x[:1]; exec("with torch.inference_mode(): v.detach_()"); v
x = torch.ones(2, requires_grad=True); y = (x.tanh() * x).sum(); exec("with torch.inference_mode(): y.backward(create_graph=True)"); x.grad
x = torch.ones(3, requires_grad=True); y = torch.unique_consecutive(x).norm(0); y.backward()
x = torch.ones((), requires_grad=True); h = []; y = x.cumsum(0); y.grad_fn.register_hook(lambda i, o: h.append(i[0].requires_grad)); y.backward(torch.ones((), requires_grad=True)); h
x = torch.ones(2, requires_grad=True); y = torch.nn.functional.mse_loss(x, torch.ones(2, dtype=torch.float64) * 3); y.backward(); (y.grad_fn.next_functions[0][0].name(), x.grad.tolist())
x = torch.tensor([1.0, float("nan")], requires_grad=True); torch.maximum(x, torch.tensor([float("nan"), 1.0])).sum().backward(); x.grad
x = torch.tensor([1.0, float("nan")], requires_grad=True); torch.minimum(torch.tensor([float("nan"), 1.0]), x).sum().backward(); x.grad
"""
ERRORS = """
torch.zeros(0).index_fill(0, torch.tensor([0]), 1)
torch.zeros(2, 0).index_fill_(1, torch.tensor([0]), 1)
torch.zeros(3)[:0].index_fill_(0, torch.tensor([0]), 1)
torch.zeros(3)[:0].index_fill(0, torch.tensor([0]), 1)
torch.zeros(0, 0).index_fill_(1, torch.tensor([0]), 1)
torch.zeros(0).index_copy_(0, torch.tensor([0]), torch.zeros(1))
torch.ones(3).put_(torch.tensor([0]), torch.ones(2))
torch.ones(2, dtype=torch.bool).hypot_(torch.ones(2, dtype=torch.int32))
torch.ones(2).clamp_max_(torch.ones(2, dtype=torch.complex64))
torch.bitwise_not(torch.ones(2), out=torch.empty(2, dtype=torch.float64))
torch.ceil(torch.ones(2, dtype=torch.complex64), out=torch.empty(2))
torch.signbit(torch.ones(2, dtype=torch.complex64), out=torch.empty(2))
torch.zeros(2).scatter_(0, torch.tensor([0]), 1j, reduce="add")
torch.mv(torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0))
torch.bmm(torch.ones(1, 2, 2).bool(), torch.ones(1, 2, 2))
torch.stack([torch.tensor(1.0), torch.ones(2)], -2)
torch.matmul(torch.ones(1).bool(), torch.ones(1).bool(), out=torch.empty((), dtype=torch.complex64))
torch.aminmax(torch.tensor(1j), dim=0)
torch.argsort(torch.ones(2), out=torch.empty(0, dtype=torch.int64))
"""


def _outcome(lib: Any, line: str) -> Any:
    env: dict[str, Any] = {"torch": lib}

    def quiet(code: str) -> None:
        with lib.no_grad():
            exec(code, env)

    def names(t: Any) -> list[str]:
        """What the tensor came from, step by step."""
        found, node = [], t.grad_fn
        while node is not None:
            found.append(node.name())
            node = node.next_functions[0][0] if node.next_functions else None
        return found

    env["quiet"], env["names"] = quiet, names
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for code in before:
                exec(code, env)
            try:
                result = eval(last, env)
            except SyntaxError:
                exec(last, env)
                return "no value"
            return _seen(lib, result)
        except Exception as error:  # which class is what is compared
            return type(error).__name__


def _seen(lib: Any, x: Any) -> Any:
    if not isinstance(x, lib.Tensor):
        return x
    node = None if x.grad_fn is None else x.grad_fn.name().split("::")[-1]
    values = x.detach().resolve_conj().tolist()
    return str(x.dtype), tuple(x.shape), x.requires_grad, node, str(values)


def _lines(text: str) -> list[str]:
    return text.strip().split("\n")


GROUPS = (
    BEHIND, WAYS, ASKED, SEVERAL, LAYOUT, LEAVES, MEMORY, OTHER_MEMORY, OVERLAPS, HISTORIES,
    BACKWARD, ERRORS,
)  # fmt: skip


@pytest.mark.parametrize("line", [line for group in GROUPS for line in _lines(group)])
def test_ends_as_in_pytorch(line: str) -> None:
    assert _outcome(torchlab, line) == _outcome(torch, line)
