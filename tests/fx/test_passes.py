"""Passes: shapes, splitting, partitions, common subexpressions, managers, pictures, make_fx."""

from __future__ import annotations

import operator
import shutil

import pytest

import torchlab as torch
from torchlab import fx, nn
from torchlab._decomp import get_decompositions
from torchlab._subclasses.fake_tensor import DataDependentOutputException
from torchlab.fx.experimental.optimization import fuse, remove_dropout
from torchlab.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torchlab.fx.passes.dialect.common.cse_pass import CSEPass
from torchlab.fx.passes.graph_drawer import FxGraphDrawer
from torchlab.fx.passes.graph_manipulation import get_size_of_node, replace_target_nodes_with
from torchlab.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torchlab.fx.passes.infra.pass_base import PassBase, PassResult
from torchlab.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from torchlab.fx.passes.operator_support import OperatorSupport, OpSupports, chain
from torchlab.fx.passes.shape_prop import ShapeProp
from torchlab.fx.passes.split_module import split_module
from torchlab.fx.passes.split_utils import split_by_tags
from torchlab.fx.passes.tools_common import legalize_graph, stable_topological_sort
from torchlab.fx.passes.utils.common import compare_graphs
from torchlab.fx.passes.utils.fuser_utils import validate_partition
from torchlab.fx.passes.utils.source_matcher_utils import get_source_partitions


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x, y):
        h = torch.relu(self.first(x))
        return self.block(h) * self.scale + y, h


def call(gm):
    torch.manual_seed(3)
    return gm(torch.randn(3, 2), torch.randn(3, 2))


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("every", [1, 2, 3, 50])
def test_split_modules_compute_the_same(every):
    gm = fx.symbolic_trace(Net())
    count = iter(range(100))
    split = split_module(gm, gm, lambda node: next(count) // every)
    assert equal(call(split), call(gm))


def test_partitions_may_not_need_each_other():
    gm = fx.symbolic_trace(lambda x: ((x + 1) * 2) + 3)
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(gm, gm, lambda node: node.target is operator.mul)


def test_split_by_tags():
    gm = fx.symbolic_trace(Net())
    for i, node in enumerate(gm.graph.nodes):
        if node.op not in ("placeholder", "get_attr", "output"):
            node.tag = "head" if i < 4 else "tail"
    split, names = split_by_tags(gm, ["head", "tail"], return_fqn_mapping=True)
    assert names["scale"] == "tail.scale" and equal(call(split), call(gm))


def test_fused_partitions_compute_the_same():
    class Calls(OperatorSupport):
        def is_node_supported(self, submodules, node):
            return node.op == "call_function"

    gm = fx.symbolic_trace(Net())
    before = call(gm)
    keep = OpSupports.decline_if_node_in_names({"relu"})
    fused = CapabilityBasedPartitioner(gm, chain(Calls(), keep)).partition_and_fuse()
    assert [n.name for n in fused.graph.nodes if n.name.startswith("fused")] == ["fused_0"]
    assert equal(call(fused), before)


def test_which_nodes_may_be_one_call():
    gm = fx.symbolic_trace(lambda x: ((x + 1) * 2) + 3)
    _, add, mul, last, _ = gm.graph.nodes
    assert validate_partition([add, mul]) and not validate_partition([add, last])


def test_common_subexpressions():
    gm = fx.symbolic_trace(lambda x: (x + 1) * (x + 1) + torch.relu(x + 1))
    result = CSEPass()(gm)
    names = [n.name for n in result.graph_module.graph.nodes]
    assert result.modified and names == ["x", "add", "mul", "relu", "add_3", "output"]
    assert not CSEPass()(result.graph_module).modified
    drawn = fx.symbolic_trace(lambda x: torch.rand_like(x) + torch.rand_like(x))
    assert not CSEPass()(drawn).modified


def test_orders():
    gm = fx.symbolic_trace(lambda a, b: (a + b) * 2)
    nodes = list(gm.graph.nodes)
    nodes[3].append(nodes[2])  # a use before its definition
    stable_topological_sort(gm)
    gm.graph.lint()
    legalize_graph(gm)
    assert [n.name for n in gm.graph.nodes] == ["a", "b", "add", "mul", "output"]


def test_targets_sizes_and_sources():
    gm = fx.symbolic_trace(Net())
    ShapeProp(gm).propagate(torch.ones(3, 2), torch.ones(3, 2))
    first = next(n for n in gm.graph.nodes if n.name == "first")
    assert get_size_of_node(gm, first) == (24, 48)
    assert first.meta["tensor_meta"].shape == (3, 2)
    found = get_source_partitions(gm.graph, [nn.Linear])
    assert [p.nodes[0].name for p in found[nn.Linear]] == ["first", "block_0"]
    replace_target_nodes_with(gm, "call_function", torch.relu, "call_function", torch.sigmoid)
    assert "torch.sigmoid(first)" in gm.code


def test_graphs_compare_by_what_they_do():
    one = fx.symbolic_trace(lambda a, b: a + b * 2).graph
    assert compare_graphs(one, fx.symbolic_trace(lambda x, y: x + y * 2).graph)
    assert not compare_graphs(one, fx.symbolic_trace(lambda x, y: x - y * 2).graph)


def test_pass_managers_keep_to_the_order():
    ran = []

    class Noted(PassBase):
        def call(self, graph_module):
            ran.append("noted")
            return PassResult(graph_module, False)

    def other(gm):
        ran.append("other")

    noted, wrapped = Noted(), pass_result_wrapper(other)
    manager = PassManager([wrapped, noted], [this_before_that_pass_constraint(noted, wrapped)])
    with pytest.raises(RuntimeError, match="constraint violated"):
        manager.validate_constraints()
    assert manager(fx.symbolic_trace(lambda x: x)).modified and ran == ["noted", "other"]
    with pytest.raises(Exception, match="running the 'other' pass"):
        PassManager([other])(fx.symbolic_trace(lambda x: x))


def test_pictures():
    gm = fx.symbolic_trace(Net())
    ShapeProp(gm).propagate(torch.ones(3, 2), torch.ones(3, 2))
    picture = FxGraphDrawer(gm, "net", ignore_parameters_and_buffers=True).get_dot_graph()
    text = picture.to_string()
    assert text.startswith("digraph net {") and "first -> relu;" in text
    assert "shape=[3, 2]" in text and "scale ->" not in text
    if shutil.which("dot"):
        assert b"<svg" in picture.create_svg()


def test_batch_norms_go_into_convolutions():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout()).eval()
    net[1].running_mean.fill_(0.5)
    x = torch.randn(1, 1, 5, 5)
    fused = fuse(net)
    assert "1" not in [n.target for n in fused.graph.nodes]
    assert torch.allclose(fused(x), net(x), atol=1e-5)
    assert "2" not in [n.target for n in remove_dropout(net).graph.nodes]


def test_make_fx_sees_operators_and_gradients():
    def step(w, x):
        assert get_proxy_mode() is not None
        return torch.autograd.grad(torch.relu(x @ w).sum(), w)[0]

    w, x = torch.randn(2, 2, requires_grad=True), torch.randn(3, 2)
    gm = make_fx(step)(w, x)
    assert torch.ops.aten.threshold_backward.default in [n.target for n in gm.graph.nodes]
    other = torch.randn(3, 2)
    assert torch.equal(gm(w, other), torch.autograd.grad(torch.relu(other @ w).sum(), w)[0])
    assert get_proxy_mode() is None


def test_decompositions():
    def f(x):
        return torch.nn.functional.gelu(x) + 1

    table = get_decompositions([torch.ops.aten.gelu])
    gm, x = make_fx(f, table)(torch.zeros(2)), torch.randn(2)
    assert "gelu" not in gm.code and torch.allclose(gm(x), f(x))


def test_make_fx_refuses_what_depends_on_values():
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(torch.ones(2))
    with pytest.raises(DataDependentOutputException):
        make_fx(lambda x: x if x.sum() > 0 else -x, tracing_mode="symbolic")(torch.ones(2))
