"""Symbolic tracing: functions, methods, operators and modules become nodes."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import torchlab as torch
from torchlab import fx, nn
from torchlab.nn import functional as F


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.GELU())
        self.scale = nn.Parameter(torch.ones(8))
        self.register_buffer("shift", torch.full((8,), 0.5))

    def forward(self, x, k=2.0):
        h = self.layers(x) * self.scale + self.shift
        a, b = h.chunk(2, -1)
        return torch.add(a, b, alpha=3).relu() - k


def test_modules_stay_whole_and_parameters_are_read():
    graph = fx.symbolic_trace(Net()).graph
    kinds = [(n.op, n.target) for n in graph.nodes]
    assert kinds[0] == ("placeholder", "x")
    assert ("call_module", "layers.0") in kinds and ("call_module", "layers.1") in kinds
    assert ("get_attr", "scale") in kinds and ("get_attr", "shift") in kinds
    assert ("call_method", "chunk") in kinds and ("call_function", operator.getitem) in kinds
    assert kinds[-1] == ("output", "output")
    graph.lint()


def test_a_traced_module_computes_the_same():
    net = Net()
    x = torch.randn(3, 4)
    traced = fx.symbolic_trace(net)
    assert torch.equal(traced(x), net(x))
    assert torch.equal(traced(x, 5.0), net(x, 5.0))
    assert torch.equal(fx.Interpreter(traced).run(x), net(x))
    assert torch.equal(fx.Transformer(traced).transform()(x), net(x))
    assert traced.scale is net.scale


def test_operators_in_both_directions():
    def f(x):
        return (1 - x) ** 2 // 3 + -x @ x.T

    traced = fx.symbolic_trace(f)
    names = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert names == [
        operator.sub,
        operator.pow,
        operator.floordiv,
        operator.neg,
        getattr,
        operator.matmul,
        operator.add,
    ]
    x = torch.arange(4.0).reshape(2, 2)
    assert torch.equal(traced(x), f(x))


def test_functions_keep_only_what_was_written():
    graph = fx.symbolic_trace(lambda x: F.gelu(torch.softmax(x, -1), approximate="tanh")).graph
    gelu = [n for n in graph.nodes if n.op == "call_function"][-1]
    assert gelu.kwargs == {"approximate": "tanh"}
    assert "torch.softmax(x, -1)" in graph.python_code("self").src


def test_code_is_readable():
    code = fx.symbolic_trace(lambda x: torch.relu(x[:, 0:2]) + 1).code
    assert code.strip() == "\n".join(
        [
            "def forward(self, x):",
            "    getitem = x[(slice(None, None, None), slice(0, 2, None))];  x = None",
            "    relu = torch.relu(getitem);  getitem = None",
            "    add = relu + 1;  relu = None",
            "    return add",
        ]
    )


def test_control_flow_on_a_proxy():
    with pytest.raises(fx.TraceError, match="cannot be used as inputs to control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(fx.TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: list(x))
    with pytest.raises(RuntimeError, match="'len' is not supported"):
        fx.symbolic_trace(lambda x: len(x))


def test_concrete_args_choose_a_branch():
    def f(x, double):
        return x * 2 if double else x

    traced = fx.symbolic_trace(f, concrete_args={"double": True})
    assert [n.name for n in traced.graph.nodes if n.op != "call_function"] == [
        "x", "double_1", "output"
    ]  # fmt: skip
    assert torch.equal(traced(torch.ones(2), True), torch.full((2,), 2.0))
    with pytest.raises(AssertionError, match="specialized to have value True"):
        traced(torch.ones(2), False)


@fx.wrap
def helper(x):
    return x if x.shape[0] > 2 else -x


def test_wrap_is_for_the_top_level():
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("helper")


def test_wrap_keeps_a_function_whole():
    traced = fx.symbolic_trace(lambda x: helper(x) + 1)
    node = next(n for n in traced.graph.nodes if n.op == "call_function")
    assert node.target is helper
    assert torch.equal(traced(torch.ones(1)), torch.zeros(1))


def test_a_tracer_may_choose_other_leaves():
    class Through(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    net = Net()
    graph = Through().trace(net)
    assert all(n.op != "call_module" for n in graph.nodes)
    x = torch.randn(2, 4)
    assert torch.allclose(fx.GraphModule(net, graph)(x), net(x))


def test_patches_are_undone_after_an_error():
    call = nn.Module.__call__
    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(lambda x: bool(x))
    assert nn.Module.__call__ is call
    assert torch.equal(F.softmax(torch.zeros(2), -1), torch.full((2,), 0.5))


def test_nodes_know_the_users_line():
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    assert "test_tracing.py:" in list(graph.nodes)[1].meta["origin"]


def test_proxies_made_by_hand_see_every_function() -> None:
    graph = fx.Graph()
    x, y = (fx.Proxy(graph.placeholder(name)) for name in "xy")
    y.tracer = x.tracer
    shape = torch.broadcast_tensors(x[..., :1], y[..., :1])[0].shape[:-1]
    z = torch.einsum("ij,jk->ik", [x, y])
    z = torch.tensordot(z, torch.einsum(x, [0, 1], y, [1, 2], [0, 2]), dims=([1], [1]))
    z = torch.nn.functional.pad(torch.block_diag(z, z), (1, 1)) + torch.zeros((2 * z.shape[0], 1))
    graph.output((z.node, shape.node))
    names = [
        n.target.__name__
        for n in graph.nodes
        if n.op == "call_function" and n.target.__module__.startswith("torch")
    ]
    assert names == [
        "broadcast_tensors", "einsum", "einsum", "tensordot", "block_diag", "pad", "zeros",
    ]  # fmt: skip
    first, second = (n for n in graph.nodes if n.target is torch.einsum)
    assert [str(a) for a in first.args] == ["ij,jk->ik", "x", "y"]
    assert [str(a) for a in second.args] == ["AB,BC->AC", "x", "y"]
    module = fx.GraphModule({}, graph)
    found, dims = module(torch.ones(2, 2), torch.eye(2))
    assert found.shape == (4, 6) and dims == (2,)
    assert found[:2, 1:3].tolist() == [[2, 2], [2, 2]]


def test_einsum_is_noted_with_its_operands_side_by_side() -> None:
    traced = fx.symbolic_trace(lambda x, y: torch.einsum("ij,jk->ik", [x, y]))
    node = next(n for n in traced.graph.nodes if n.op == "call_function")
    assert [str(a) for a in node.args] == ["ij,jk->ik", "x", "y"]


def test_functions_that_pytorch_has_in_c_are_noted_as_written() -> None:
    def noted(fn: Any) -> tuple[int, dict[str, Any]]:
        node = next(n for n in fx.symbolic_trace(fn).graph.nodes if n.op == "call_function")
        return len(node.args), dict(node.kwargs)

    assert noted(lambda x: torch.istft(x, 4, center=True)) == (2, {"center": True})
    assert noted(lambda x: torch.chain_matmul(x, x)) == (2, {})
    assert noted(lambda x: torch.svd_lowrank(x, q=2)) == (1, {"q": 2, "niter": 2, "M": None})
