"""fx and compile against PyTorch: graphs of the same shape, results and errors alike."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab
from torchlab import fx

torch = pytest.importorskip("torch")


def _mlp(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = T.nn.Sequential(T.nn.Linear(4, 8), T.nn.GELU())
            self.w = T.nn.Parameter(T.ones(8))

        def forward(self, x, k=2):
            h = self.l(x) * self.w
            a, b = h.chunk(2, -1)
            return T.relu(a + b).sum(-1, keepdim=True) - k

    return Net()


def test_graphs_and_code_are_pytorchs():
    ours, theirs = fx.symbolic_trace(_mlp(torchlab)), torch.fx.symbolic_trace(_mlp(torch))
    assert [(n.op, n.name, str(n.args)) for n in ours.graph.nodes] == [
        (n.op, n.name, str(n.args)) for n in theirs.graph.nodes
    ]
    assert ours.code.strip() == theirs.code.strip()


FUNCTIONS = {
    "chain": lambda T, x, w: T.nn.functional.layer_norm(
        T.nn.functional.gelu(x * w) + x, (8,), w, w
    ),
    "softmax": lambda T, x, w: T.softmax(x * w, -1).log(),
    "reductions": lambda T, x, w: x.std(0) + (x * w).amax(0) + x.mean(),
    "views": lambda T, x, w: (x.t().reshape(4, -1)[:, ::2] * 3).sum(0),
    "matmul": lambda T, x, w: T.tanh(x @ x.t()) @ (x * w),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((6, 8)).astype("f"), rng.standard_normal(8).astype("f")
    results = []
    for T, run in ((torchlab, torchlab.compile), (torch, lambda f: f)):
        a, b = (T.tensor(v, requires_grad=True) for v in (x, w))
        y = run(lambda x, w, T=T: FUNCTIONS[name](T, x, w))(a, b)
        y.sum().backward()
        results.append(
            [v.detach().numpy() for v in (y, a.grad, *([b.grad] if b.grad is not None else []))]
        )
    for mine, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=2e-4, atol=2e-4)


def test_trace_errors_have_pytorchs_words():
    def message(trace):
        with pytest.raises(ValueError) as e:
            trace(lambda x: 1 if x else 2)
        return str(e.value)

    assert message(fx.symbolic_trace) == message(torch.fx.symbolic_trace)
