"""A graph dies with its last reference, without the garbage collector; deep graphs without
recursion; saved tensors as they are consumed."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Iterator

import pytest

import torchlab
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import Node
from torchlab.autograd import Function, graph


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _alive() -> dict[str, int]:
    kinds = (torchlab.Tensor, Storage, Node)
    found = {k.__name__: 0 for k in kinds}
    for x in gc.get_objects():
        for k in kinds:
            if issubclass(type(x), k):
                found[k.__name__] += 1
    return found


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (1 - y * y)


class Write(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


def _step(model: torchlab.nn.Module, x: torchlab.Tensor, optimizer: object) -> None:
    y = model(x)
    y = Twice.apply(y)
    y = y * 1
    v = y.view(-1)[1:]
    v.mul_(2)
    a, b = y.split(2, 1)
    z = (a * 1).add_(1)
    z = Write.apply(z)
    Write.apply(z[0])
    y.retain_grad()
    y.register_hook(lambda g: g * 1)
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        loss = (z.exp() * b).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def _training() -> tuple[torchlab.nn.Module, torchlab.Tensor, object]:
    nn = torchlab.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 4))
    return model, torchlab.randn(5, 4), torchlab.optim.Adam(model.parameters(), lr=1e-3)


def test_training_steps_leave_nothing_behind(no_collector: None) -> None:
    parts = _training()
    for _ in range(3):
        _step(*parts)
    before = _alive()
    for _ in range(20):
        _step(*parts)
    assert _alive() == before


def test_second_derivatives_leave_nothing_behind(no_collector: None) -> None:
    x = torchlab.ones(3, requires_grad=True)

    def step() -> None:
        (g,) = torchlab.autograd.grad((Twice.apply(x) ** 3).sum(), x, create_graph=True)
        torchlab.autograd.grad(g.sum(), x)
        (x * x).sum().backward(inputs=[x])
        x.grad = None

    for _ in range(3):
        step()
    before = _alive()
    for _ in range(20):
        step()
    assert _alive() == before


def test_a_failed_backward_leaves_nothing_behind(no_collector: None) -> None:
    def step() -> None:
        x = torchlab.ones(3, requires_grad=True)
        y = x.exp()
        y.register_hook(lambda g: 1)
        with pytest.raises(TypeError):
            (y * x).sum().backward()

    for _ in range(3):
        step()
    gc.collect()  # what the exceptions' frames held
    before = _alive()
    for _ in range(5):
        step()
    gc.collect()
    assert _alive() == before


def test_a_graph_of_100_000_nodes_is_deleted_without_recursion() -> None:
    limit = sys.getrecursionlimit()
    x = torchlab.ones(2, requires_grad=True)
    y = x
    for i in range(100_000):
        y = y.view(2) if i % 3 == 0 else y * 1.0 if i % 3 == 1 else y.clone().add_(1)
    nodes = weakref.ref(y.grad_fn)
    del y
    assert nodes() is None and sys.getrecursionlimit() == limit
    z = Twice.apply(x)
    for _ in range(30_000):
        z = Twice.apply(z)
    del z


def test_saved_tensors_are_freed_as_they_are_consumed() -> None:
    x = torchlab.ones(4, requires_grad=True)
    seen: list[int] = []
    refs = []
    y = x
    for _ in range(6):
        y = y.tanh()
        refs.append(weakref.ref(y._a))
        y.register_hook(lambda g: seen.append(sum(r() is not None for r in refs)))
    loss = y.sum()
    del y
    assert sum(r() is not None for r in refs) == 6
    loss.backward()
    # The first hook runs before anything was consumed; each step then frees one result.
    assert seen == [6, 5, 4, 3, 2, 1]
    assert sum(r() is not None for r in refs) == 0


def test_retained_graphs_keep_what_they_saved() -> None:
    x = torchlab.ones(4, requires_grad=True)
    y = x.tanh()
    kept = weakref.ref(y._a)
    loss = y.sum()
    del y
    loss.backward(retain_graph=True)
    assert kept() is not None
    loss.backward()
    assert kept() is None


def test_a_leaf_that_is_gone_frees_its_memory_with_the_graph() -> None:
    x = torchlab.ones(4, requires_grad=True)
    memory = weakref.ref(x._a)
    y = (x + 1).sum()
    del x
    assert memory() is not None  # as in PyTorch: the node can give the leaf back
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0].variable
    assert leaf.tolist() == [1.0] * 4 and leaf.requires_grad and leaf.is_leaf
    y.backward()
    assert leaf.grad.tolist() == [1.0] * 4
    del y, leaf
    assert memory() is None


def test_new_data_frees_the_old() -> None:
    x = torchlab.ones(4, requires_grad=True)
    memory = weakref.ref(x._a)
    x.data = torchlab.zeros(4)
    assert memory() is None


def _peak(run) -> int:
    """The most bytes that NumPy and Python held at once while `run` ran."""
    run(8)  # what is made once
    tracemalloc.start()
    try:
        run(512)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_peak_of_a_chain() -> None:
    def run(n: int) -> None:
        x = torchlab.full((n, n), 0.5, requires_grad=True)
        y = x
        for _ in range(12):
            y = y.tanh()
        loss = y.sum()
        del y
        loss.backward()

    # The leaf, 12 results, the gradient and one buffer (PyTorch's formula needs none: 14).
    assert _peak(run) <= 15.1 * 512 * 512 * 4


def test_the_peak_of_a_training_step() -> None:
    nn = torchlab.nn

    def run(n: int) -> None:
        model = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(n, n), nn.ReLU())])
        x = torchlab.randn(4 * n, n)
        (model(x) ** 2).mean().backward()

    # In units of a weight: 3 weights and their gradients, and results of 4: input, 3 of layers,
    # 3 of ReLUs, the square, the gradient and one more.
    assert _peak(run) <= (3 + 3 + 10 * 4 + 1) * 512 * 512 * 4
