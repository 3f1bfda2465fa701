"""Checkpointing against real PyTorch: values, gradients, how often the function runs, random
numbers, what selective checkpointing keeps, and the errors."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")
PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


def module(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.utils.checkpoint")


def leaf(lib: Any, n: int = 4) -> Any:
    lib.manual_seed(0)
    return lib.randn(n, n, dtype=lib.float64).requires_grad_()


def counted(fn: Any) -> Any:
    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        run.calls += 1
        return fn(*args, **kwargs)

    run.calls = 0
    return run


def error(fn: Any) -> Any:
    """The class and the first line of the error that a call raises, or what it returns."""
    try:
        return fn()
    except Exception as e:
        text = str(e).split(": [")[0].split(" (or")[0]
        return type(e).__name__, text.splitlines()[0].replace("torchlab", "torch")[:90]


@program
@pytest.mark.parametrize("reentrant", [True, False])
def values(lib, reentrant):
    C, x = module(lib), leaf(lib)
    f = counted(lambda a, b: (a.mm(b).sin() * a.exp(), 3, a.cos()))
    out, three, other = C.checkpoint(f, x, x.detach() * 2, use_reentrant=reentrant)
    (out.sum() + other.prod()).backward()
    return out, three, other, x.grad, f.calls


@program
@pytest.mark.parametrize("reentrant", [True, False])
def nested(lib, reentrant):
    C, x = module(lib), leaf(lib)
    inner = counted(lambda y: y.sin().cos())
    outer = counted(
        lambda y: C.checkpoint(lambda z: inner(z).exp(), y.sin(), use_reentrant=reentrant).cos()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = C.checkpoint(outer, x, use_reentrant=reentrant)
    y.sum().backward()
    return y, x.grad, inner.calls, outer.calls


@program
@pytest.mark.parametrize("depth", [3, 4])
def nested_deeply(lib, depth):
    C, x = module(lib), leaf(lib)
    calls = [0] * (depth + 1)

    def level(n: int, y: Any) -> Any:
        calls[n] += 1
        if n == depth:
            return y.sin().cos()
        return C.checkpoint(functools.partial(level, n + 1), y.tanh(), use_reentrant=False).exp()

    y = level(0, x)
    y.sum().backward()
    return y, x.grad, calls


@program
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("preserve", [True, False])
def random_numbers(lib, reentrant, preserve):
    C, x = module(lib), leaf(lib)
    lib.manual_seed(3)
    f = lambda y: lib.nn.functional.dropout(y.sin(), 0.4) * lib.rand(4, 4, dtype=y.dtype)
    y = C.checkpoint(f, x, use_reentrant=reentrant, preserve_rng_state=preserve)
    before = lib.rand(2)
    y.sum().backward()
    return y, before, lib.rand(2), x.grad


@program
@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("how", ["context", "argument"])
def early_stop(lib, stop, how):
    C, x = module(lib), leaf(lib)
    seen = []

    def f(y: Any) -> Any:
        y = y.sin().cos()
        seen.append("end")
        return y

    if how == "context":
        with C.set_checkpoint_early_stop(stop):
            y = C.checkpoint(f, x, use_reentrant=False)
    else:
        y = C.checkpoint(f, x, use_reentrant=False, early_stop=stop)
    y.sum().backward()
    return len(seen), x.grad


@program
def several_backwards(lib):
    C, x = module(lib), leaf(lib)
    f = counted(lambda y: (y.sin(), y.cos(), y.sin().cos()))
    a, b, c = C.checkpoint(f, x, use_reentrant=False)
    counts = []
    for y in (a, b, c):
        y.sum().backward()
        counts.append(f.calls)
    g = counted(lambda y: y.sin().cos())
    y = C.checkpoint(g, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    return counts, g.calls, x.grad, error(y.backward)


@program
def grouped_backwards(lib):
    C, x = module(lib), leaf(lib)
    f = counted(lambda y: (y.sin(), y.cos(), y.sin().cos()))
    outputs = C.checkpoint(f, x, use_reentrant=False)
    with C.GraphExecGroup() as group:
        nested = error(C.GraphExecGroup().__enter__)
        for y in outputs:
            y.sum().backward()
    y = C.checkpoint(lambda z: z.sin().cos(), x, use_reentrant=False).sum()
    with C.GraphExecGroup():
        y.backward(retain_graph=True)
        again = error(y.backward)
    return f.calls, x.grad, nested[0], again, C.GraphExecGroup._get_current_group(), type(group)


@program
def derivatives(lib):
    C, x = module(lib), leaf(lib)
    f = counted(lambda y: (y * y).sin().mm(y))
    y = C.checkpoint(f, x, use_reentrant=False)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.pow(2).sum(), x)
    (i,) = lib.autograd.grad(C.checkpoint(f, x, use_reentrant=False)[0].sum(), x)
    return g, h, i, f.calls


@program
def backward_inside(lib):
    C, x = module(lib), leaf(lib)

    def f(y: Any) -> Any:
        z = y.sin().exp()
        (g,) = lib.autograd.grad(z.sum(), y, create_graph=True)
        return z.cos() * g

    f = counted(f)
    y = C.checkpoint(f, x, use_reentrant=False)
    before = f.calls
    y.sum().backward()
    return y, x.grad, before, f.calls


@program
def keywords_and_containers(lib):
    C, x = module(lib), leaf(lib)
    f = lambda a, b, d: {"r": a.sin() * b[0].exp() * d["k"].cos()}
    y = C.checkpoint(f, x, [x * 2], d={"k": x}, use_reentrant=False)["r"]
    y.sum().backward()
    return y, x.grad


@program
def without_gradients(lib):
    C, x = module(lib), leaf(lib)
    f = counted(lambda y: y.sin())
    with lib.no_grad():
        a = C.checkpoint(f, x, use_reentrant=False)
    b = C.checkpoint(f, x.detach(), use_reentrant=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        c = C.checkpoint(f, x.detach(), use_reentrant=True)
    return (
        a.requires_grad,
        b.requires_grad,
        c.requires_grad,
        [str(w.message) for w in told],
        f.calls,
    )


@program
def written_inside(lib):
    C, x = module(lib), leaf(lib)

    def f(y: Any) -> Any:
        z = y.sin()
        z.mul_(2)
        return z.cos()

    C.checkpoint(f, x, use_reentrant=False).sum().backward()
    return x.grad


@program
@pytest.mark.parametrize("reentrant", [True, False])
def input_written(lib, reentrant):
    C, x = module(lib), leaf(lib)
    y = x * 1
    z = C.checkpoint(lambda a: a.sin().cos(), y, use_reentrant=reentrant)
    y.add_(1)
    return error(z.sum().backward)


@program
def hooks_around_and_inside(lib):
    C, x = module(lib), leaf(lib)
    seen = []
    hooks = lib.autograd.graph.saved_tensors_hooks
    pair = (lambda t: seen.append("pack") or t, lambda t: seen.append("unpack") or t)
    with hooks(*pair):
        y = C.checkpoint(lambda a: a.sin().cos(), x, use_reentrant=False)
    around = len(seen)

    def f(a: Any) -> Any:
        with hooks(*pair):
            return a.sin().cos()

    z = C.checkpoint(f, x, use_reentrant=False)
    (y.sum() + z.sum()).backward()
    return around, seen, x.grad


@program
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("segments", [1, 2, 3])
def sequential(lib, reentrant, segments):
    C = module(lib)
    lib.manual_seed(1)
    net = lib.nn.Sequential(
        *[m for _ in range(3) for m in (lib.nn.Linear(4, 4), lib.nn.Tanh())]
    ).double()
    calls = [0] * 6
    for i, m in enumerate(net):
        m.register_forward_hook(lambda *_, i=i: calls.__setitem__(i, calls[i] + 1))
    x = leaf(lib)
    y = C.checkpoint_sequential(net, segments, x, use_reentrant=reentrant)
    y.sum().backward()
    z = C.checkpoint_sequential([lib.sin, lib.cos], 2, x, use_reentrant=reentrant)
    return y, z, x.grad, [p.grad for p in net.parameters()], calls


@program
def saved_value_looked_at(lib):
    C, x = module(lib), leaf(lib)
    f = counted(lambda y: y.sin().cos())
    y = C.checkpoint(f, x, use_reentrant=False)
    a, b = y.grad_fn._saved_self, y.grad_fn._saved_self
    y.sum().backward()
    return a, b, f.calls, x.grad


@program
@pytest.mark.parametrize("case", range(16))
def errors(lib, case):
    C, x = module(lib), leaf(lib)

    def differing(first: Any, then: Any, **kw: Any) -> Any:
        n = [0]

        def f(y: Any) -> Any:
            n[0] += 1
            return first(y) if n[0] == 1 else then(y)

        return lambda: C.checkpoint(f, x, use_reentrant=False, **kw).sum().backward()

    def boom(y: Any) -> Any:
        raise ValueError("boom")

    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return y * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    once = lambda y: y.sin().cos()
    grad = lib.autograd.grad
    reentrant = lambda f=lib.sin, **kw: C.checkpoint(f, x, use_reentrant=True, **kw)
    return error(
        (
            differing(once, lib.sin),
            differing(lib.sin, once, early_stop=False),
            differing(once, lambda y: y.float().sin().cos()),
            differing(once, lambda y: y.float().sin().cos(), determinism_check="none"),
            differing(once, lib.sin, debug=True),
            differing(once, boom),
            differing(once, once, determinism_check="no"),
            lambda: reentrant(foo=1),
            lambda: reentrant(debug=True),
            lambda: grad(reentrant().sum(), x),
            lambda: reentrant().sum().backward(inputs=[x]),
            lambda: reentrant(lambda y: y.detach()).sum().backward(),
            lambda: C.checkpoint(Twice.apply, x.sin(), use_reentrant=False).sum().backward(),
            lambda: C.checkpoint_sequential([lib.sin], 1, x, use_reentrant=False, foo=1),
            lambda: C.checkpoint_sequential([lib.sin], 0, x, use_reentrant=False),
            lambda: C.detach_variable(x),
        )[case]
    )


def saving(lib: Any, policy: Any, **kw: Any) -> Any:
    make = module(lib).create_selective_checkpoint_contexts
    return functools.partial(make, policy, **kw)


@program
@pytest.mark.parametrize("kind", ["list", "policy", "bool", "all", "none", "offload"])
def selective(lib, kind):
    """The gradients, what the policy is asked, and how often products are computed again."""
    C, x = module(lib), leaf(lib)
    P, mm = C.CheckpointPolicy, lib.ops.aten.mm.default
    asked = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append((str(op), ctx.is_recompute, ctx.op_output.shape))
        return {
            "policy": P.MUST_SAVE if op == mm else P.PREFER_RECOMPUTE,
            "bool": op == mm,
            "all": P.PREFER_SAVE,
            "none": P.MUST_RECOMPUTE,
            "offload": P.MUST_CPU_OFFLOAD,
        }[kind]

    mode = importlib.import_module(f"{lib.__name__}.utils._python_dispatch").TorchDispatchMode

    class Count(mode):
        ran: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            self.ran.append(str(func))
            return func(*args, **(kwargs or {}))

    f = lambda y: lib.sigmoid((y.mm(y)).sin().mm(y)) * y
    with Count() as seen:
        y = C.checkpoint(
            f, x, use_reentrant=False, context_fn=saving(lib, [mm] if kind == "list" else policy)
        )
        y.sum().backward()
    count = {op: seen.ran.count(f"aten.{op}.default") for op in ("mm", "sin", "sigmoid")}
    return y, x.grad, asked, count


@program
@pytest.mark.parametrize("case", range(6))
def selective_errors(lib, case):
    C, x = module(lib), leaf(lib)
    make, mm = C.create_selective_checkpoint_contexts, lib.ops.aten.mm.default
    runs = [0]

    def run(f: Any, **kw: Any) -> Any:
        return C.checkpoint(f, x, use_reentrant=False, context_fn=saving(lib, [mm], **kw)).sum()

    def mutating(y: Any) -> Any:
        z = y.mm(y)
        z.mul_(2)
        return z.sin()

    def other(y: Any) -> Any:
        runs[0] += 1
        if runs[0] == 2:
            with lib.no_grad():
                y.tan()
        return y.sin().cos()

    def twice() -> None:
        y = run(lambda z: z.mm(z).sin())
        y.backward(retain_graph=True)
        y.backward()

    return error(
        (
            lambda: make([1]),
            lambda: make([lib.ops.aten.mm]),
            lambda: make(3),
            lambda: run(mutating).backward(),
            lambda: run(other).backward(),
            twice,
        )[case]
    )


@program
def selective_mutation_allowed(lib):
    C, x = module(lib), leaf(lib)

    def f(y: Any) -> Any:
        z = y.mm(y)
        z.mul_(2)
        return z.sin()

    context = saving(lib, [lib.ops.aten.mm.default], allow_cache_entry_mutation=True)
    C.checkpoint(f, x, use_reentrant=False, context_fn=context).sum().backward()
    return x.grad


@program
@pytest.mark.parametrize("reentrant", [True, False])
def autocast(lib, reentrant):
    C = module(lib)
    x = leaf(lib).detach().float().requires_grad_()
    kinds = []

    def f(y: Any) -> Any:
        z = y.mm(y)
        kinds.append(str(z.dtype))
        return z.float().sin()

    with lib.autocast("cpu", dtype=lib.bfloat16):
        y = C.checkpoint(f, x, use_reentrant=reentrant)
    y.sum().backward()
    return kinds, x.grad


def plain(x: Any) -> Any:
    """What two results have to agree in."""
    if isinstance(x, (torch.Tensor, torchlab.Tensor)):
        digits = [f"{v:.8g}" for v in x.detach().double().flatten().tolist()]
        return str(x.dtype).replace("torchlab", "torch"), list(x.shape), digits
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return x.__name__ if isinstance(x, type) else str(x).replace("torchlab", "torch")


def cases() -> list[Any]:
    found = []
    for fn in PROGRAMS:
        grid: list[dict[str, Any]] = [{}]
        for mark in getattr(fn, "pytestmark", []):
            name, given = mark.args
            grid = [{**g, name: v} for g in grid for v in given]
        for kw in grid:
            name = "-".join([fn.__name__, *map(str, kw.values())])
            found.append(pytest.param(fn, kw, id=name))
    return found


@pytest.mark.parametrize(("fn", "kw"), cases())
def test_same_as_torch(fn, kw):
    assert plain(fn(torchlab, **kw)) == plain(fn(torch, **kw))
