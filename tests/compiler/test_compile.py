"""Compiled equals eager, values and gradients; what is not compiled says so and runs eagerly."""

from __future__ import annotations

import warnings

import pytest

import torchlab as torch
from torchlab import nn
from torchlab._core import events
from torchlab._core.codegen.toolchain import find_compiler
from torchlab.nn import functional as F

GELU = nn.Sequential(
    nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)
)
CNN = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)
)
NORMED = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True)).eval()

FUNCTIONS = {
    "mlp": (GELU, lambda: (_x(),)),
    "cnn": (CNN, lambda: (torch.randn(2, 1, 8, 8),)),
    "batch norm in eval": (NORMED, lambda: (torch.randn(2, 1, 8, 8),)),
    "softmax": (lambda x: torch.softmax(x, -1) + F.log_softmax(x, 0), lambda: (_x(),)),
    "layer norm": (lambda x, w: F.layer_norm(F.gelu(x * w) + x, (8,), w, w), lambda: (_x(), _w())),
    "broadcast": (lambda x, w: (x + w) * w - torch.sin(x) / (w.abs() + 1), lambda: (_x(), _w())),
    "reductions": (
        lambda x: (x.sum(0), x.mean(), x.amax(1), x.std(), x.var(0), x.logsumexp(1)),
        lambda: (_x(),),
    ),
    "views": (lambda x: x.t().reshape(4, 12).permute(1, 0)[1:7:2, :2] * 2, lambda: (_x(),)),
    "where, clamp": (
        lambda x: torch.where(x > 0, x, x * 2).clamp(min=-1).clamp(max=2),
        lambda: (_x(),),
    ),
    "cross entropy": (
        lambda x, t: F.cross_entropy(x, t),
        lambda: (_x(), torch.tensor([0, 1, 2, 3, 4, 5])),
    ),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        lambda: (_leaf(2, 2, 5, 4),),
    ),
    "matrices": (lambda x, w: (x @ x.t()).relu().mv(x[:, 0]) + x @ w, lambda: (_x(), _w())),
    "integers": (
        lambda i: (i // 3 + i % 2, i / 2, i.float().mean(), i.max(), i.argmax(-1)),
        lambda: (torch.arange(12).reshape(3, 4),),
    ),
    "types": (lambda x: (x.double() * 2).tanh().sum(-1), lambda: (_x(),)),
    "joined and cut": (
        lambda x: (
            torch.cat([x, x * 2], 1).chunk(2, 1)[1].contiguous() + torch.stack([x, -x]).mean(0)
        ),
        lambda: (_x(),),
    ),
    "in place on a fresh value": (lambda x: (x * 2).add_(1).relu_(), lambda: (_x(),)),
    "several results": (lambda x: (x.max(1).values * 2, x.sort(-1)), lambda: (_x(),)),
    "embedding": (
        lambda i, e: F.embedding(i, e).sum(1),
        lambda: (torch.tensor([[1, 2], [3, 0]]), _leaf(5, 4)),
    ),
    "constants": (
        lambda x: torch.zeros_like(x) + torch.ones(8) * x + torch.arange(8),
        lambda: (_x(),),
    ),
    "powers": (lambda x: x**3 + x**2 - 2 / (x * x + 1) + (2 - x), lambda: (_x(),)),
    "losses": (
        lambda x, w: F.mse_loss(x, w.expand(6, 8)) + F.smooth_l1_loss(x, x * w),
        lambda: (_x(), _w()),
    ),
}


def _leaf(*shape):
    return torch.randn(*shape).requires_grad_()


def _x():
    return _leaf(6, 8)


def _w():
    return _leaf(8)


def _list(r):
    return [x for y in r for x in _list(y)] if isinstance(r, (tuple, list)) else [r]


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_equals_eager(name, backend):
    torch.manual_seed(1)
    fn, make = FUNCTIONS[name]
    args = make()
    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    got, wanted = _list(compiled(*args)), _list(fn(*args))
    for a, b in zip(got, wanted, strict=True):
        assert (a.shape, a.dtype, a.stride(), a.requires_grad) == (
            b.shape,
            b.dtype,
            b.stride(),
            b.requires_grad,
        )
        assert torch.allclose(a.detach(), b.detach(), rtol=1e-5, atol=1e-5)
    leaves = [t for t in args if t.requires_grad] + (
        list(fn.parameters()) if isinstance(fn, nn.Module) else []
    )
    pairs = [
        (a, b, torch.randn(b.shape).to(b.dtype))
        for a, b in zip(got, wanted, strict=True)
        if b.requires_grad
    ]
    if pairs:
        left = torch.autograd.grad([a for a, _, _ in pairs], leaves, [g for *_, g in pairs])
        right = torch.autograd.grad([b for _, b, _ in pairs], leaves, [g for *_, g in pairs])
        for a, b in zip(left, right, strict=True):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    compiled(*args)
    assert len(compiled.segments) == 1


def test_the_reference_generator_agrees():
    args = (_x(), _w())
    fn = FUNCTIONS["layer norm"][0]
    for language in ("python", "auto"):
        out = torch.compile(fn, options={"language": language})(*args)
        assert torch.allclose(out.detach(), fn(*args).detach(), atol=1e-5)


def test_the_chain_is_one_kernel_and_one_node():
    f = torch.compile(FUNCTIONS["layer norm"][0])
    y = f(_x(), _w())
    assert y.grad_fn.name() == "CompiledFunctionBackward"
    forward, backward = f.compiled_programs
    assert len(forward.kernels) == 1
    origins = [o for n in forward.graph.nodes for o in n.origin]
    assert any("test_compile.py:" in o for o in origins)


def test_training_a_module_is_the_same_eagerly_and_compiled():
    def train(compiled):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        run = torch.compile(model) if compiled else model
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        losses = []
        for _ in range(5):
            opt.zero_grad()
            loss = F.mse_loss(run(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses

    assert train(True) == pytest.approx(train(False), rel=1e-5)


# ---- guards -------------------------------------------------------------------------------------


FACTOR = 2.0


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.factor = 1.0

    def forward(self, x):
        return x * self.weight * self.factor if self.training else x * 0


def test_attributes_and_the_training_flag_are_guarded():
    model = Scaled()
    f = torch.compile(model)
    x = torch.ones(3)
    assert f(x).tolist() == [1, 1, 1]
    model.factor = 4.0
    assert f(x).tolist() == [4, 4, 4]
    model.eval()
    assert f(x).tolist() == [0, 0, 0]
    model.train()
    model.weight = nn.Parameter(torch.full((3,), 2.0))
    assert f(x).tolist() == [8, 8, 8]
    with torch.no_grad():
        model.weight.fill_(1.0)  # values are inputs: no new segment
    before = len(f.segments)
    assert f(x).tolist() == [4, 4, 4] and len(f.segments) == before


def test_globals_closures_and_arguments_are_guarded():
    global FACTOR
    scale = [3.0]
    offset = 1.0

    def f(x, k, flag=True):
        return (x * FACTOR * scale[0] + offset) * k if flag else x

    def set_offset(v):
        nonlocal offset
        offset = v

    c = torch.compile(f)
    x = torch.ones(2)
    try:
        assert c(x, 1).tolist() == [7, 7]
        FACTOR = 1.0
        assert c(x, 1).tolist() == [4, 4]
        scale[0] = 5.0
        assert c(x, 1).tolist() == [6, 6]
        set_offset(0.0)
        assert c(x, 1).tolist() == [5, 5]
        assert c(x, 2).tolist() == [10, 10]
        assert c(x, 2, False).tolist() == [1, 1]
        assert c(x, 1).tolist() == [5, 5]
        assert not c.breaks
    finally:
        FACTOR = 2.0


def test_shapes_types_strides_and_grad_mode_are_guarded():
    c = torch.compile(lambda x: x * 2)
    x = torch.ones(2, 3)
    assert c(x).dtype is torch.float32
    assert c(x.double()).dtype is torch.float64
    assert c(x.t()).shape == (3, 2) and c(x.t()).stride() == (x.t() * 2).stride()
    assert c(x.clone().requires_grad_()).requires_grad
    with torch.no_grad():
        assert not c(x.clone().requires_grad_()).requires_grad
    assert len(c.segments) == 5


def test_too_many_shapes_run_eagerly_with_one_warning():
    c = torch.compile(lambda x: x + 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for n in range(1, 12):
            assert c(torch.ones(n)).sum().item() == 2 * n
    assert len(c.segments) == 8
    assert len([w for w in said if "has been compiled 8 times" in str(w.message)]) == 1


def test_guard_failures_and_captures_are_events():
    seen = []
    # fmt: skip
    with (
        events.guard_failure.subscribe(lambda **p: seen.append(p["guard"])),
        events.capture.subscribe(lambda **p: seen.append(len(p["guards"]))),
    ):
        c = torch.compile(lambda x: x + 1)
        c(torch.ones(2))
        c(torch.ones(3))
    assert seen[1] == "argument 0" and len(seen) == 3


# ---- breaks -------------------------------------------------------------------------------------


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.calls


def _branch(x):
    if x.sum() > 0:
        return x
    return -x


def _writes(x):
    x.add_(1)
    return x * 2


def _prints(x):
    print("hello")
    return x + 1


def _swallows(x):
    try:
        return x * x.sum().item()
    except Exception:
        return x


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _branch, "values are needed"),
        (lambda: lambda x: x * x.sum().item(), "reads a tensor's values"),
        (lambda: _swallows, "reads a tensor's values"),
        (lambda: lambda x: F.dropout(x, 0.5) * 0, "random"),
        (lambda: lambda x: x + torch.rand(3) * 0, "random"),
        (lambda: _writes, "writes into an input"),
        (lambda: _prints, r"calls print\(\)"),
        (lambda: Counts(), "sets an attribute"),
        (lambda: lambda x: x.view(3, 1), "view of an input"),
    ],
)
def test_breaks_run_eagerly_and_say_why_once(make, reason, capsys):
    fn, other = make(), make()
    breaks = []
    c = torch.compile(fn)
    with (
        events.graph_break.subscribe(lambda **p: breaks.append(p)),
        pytest.warns(UserWarning, match=reason),
    ):
        first = c(torch.ones(3))
    assert torch.equal(first, other(torch.ones(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = c(torch.ones(3))
    assert torch.equal(second, other(torch.ones(3)))
    assert (
        len(breaks) == 1
        and "test_compile.py:" in breaks[0]["source"]
        or reason in ("view of an input", "random")
    )
    assert not c.segments
    with pytest.raises(RuntimeError, match=reason):
        torch.compile(make(), fullgraph=True)(torch.ones(3))


def test_a_capture_that_is_given_up_leaves_no_trace():
    log = []

    def f(x):
        log.append(x)
        return x + 1

    c = torch.compile(f)
    with pytest.warns(UserWarning, match="changes what it reads"):
        c(torch.ones(2))
    assert len(log) == 1 and log[0].sum().item() == 2
    state = torch.get_rng_state().clone() if hasattr(torch, "get_rng_state") else None
    with pytest.warns(UserWarning, match="random"):
        torch.compile(lambda x: x)(torch.ones(1))
        torch.compile(lambda x: torch.rand(2) + x, fullgraph=False)(torch.ones(2))
    assert state is None or state.shape == torch.get_rng_state().shape


def test_users_errors_are_the_users():
    c = torch.compile(lambda x: x.reshape(7))
    with pytest.raises(RuntimeError, match="shape '\\[7\\]' is invalid"):
        c(torch.ones(3))


def test_train_breaks_and_eval_compiles():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    c = torch.compile(model)
    x = torch.ones(2, 3)
    with pytest.warns(UserWarning, match="random"):
        c(x)
    model.eval()
    assert torch.allclose(c(x), model(x)) and len(c.segments) == 1


# ---- the tape -----------------------------------------------------------------------------------


def test_backward_twice_and_double_backward_raise_as_they_should():
    x = _x()
    c = torch.compile(lambda x: (x * x).sum())
    y = c(x)
    y.backward(retain_graph=True)
    y.backward()
    assert torch.allclose(x.grad, 4 * x.detach())
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(c(x), x, create_graph=True)
    twice = torch.compile(lambda x: (x * x * x).sum(), backend="aot_eager")
    (g,) = torch.autograd.grad(twice(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(h, 6 * x.detach())


def test_a_write_to_what_was_saved_is_noticed():
    x, w = _x(), torch.randn(8)
    y = torch.compile(lambda x, w: x * w)(x, w)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_inputs_that_are_not_leaves_pass_gradients_on():
    x = _x()
    y = torch.compile(lambda h: h.tanh() * 2)(x * 3)
    y.sum().backward()
    assert torch.allclose(x.grad, 6 * (1 - torch.tanh(3 * x.detach()) ** 2), atol=1e-5)


def test_what_precedes_a_column_reduction_is_computed():
    x, w = _x(), _w()
    f = torch.compile(FUNCTIONS["broadcast"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # "the generated C++ was not compiled"
        got = torch.autograd.grad(f(x, w).sum(), w)[0]
    assert torch.allclose(got, torch.autograd.grad(f.fn(x, w).sum(), w)[0], atol=1e-4)
    assert find_compiler() is None or {p.language for p in f.compiled_programs} == {"cpp"}
