"""Graphs: making, changing, checking and printing them."""

from __future__ import annotations

import copy
import operator

import pytest

import torchlab as torch
from torchlab import fx, nn


def simple() -> fx.GraphModule:
    return fx.symbolic_trace(lambda x, y: torch.relu(x) + y)


def test_str():
    assert str(simple().graph) == "\n".join(
        [
            "graph():",
            "    %x : [num_users=1] = placeholder[target=x]",
            "    %y : [num_users=1] = placeholder[target=y]",
            (
                "    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), "
                "kwargs = {})"
            ),
            (
                "    %add : [num_users=1] = call_function[target=operator.add](args = "
                "(%relu, %y), kwargs = {})"
            ),
            "    return add",
        ]
    )


def test_tabular(capsys):
    simple().graph.print_tabular()
    head, rule, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["opcode", "name", "target", "args", "kwargs"]
    assert len(rows) == 5 and rows[-1].split()[:3] == ["output", "output", "output"]


def test_users_and_inputs_follow_changes():
    gm = simple()
    x, y, relu, add, _ = gm.graph.nodes
    assert list(x.users) == [relu] and add.all_input_nodes == [relu, y]
    add.args = (x, y)
    assert list(relu.users) == [] and list(x.users) == [relu, add]
    with pytest.raises(RuntimeError, match="still had 1 users"):
        gm.graph.erase_node(y)
    gm.graph.erase_node(relu)
    assert [n.name for n in gm.graph.nodes] == ["x", "y", "add", "output"]
    gm.recompile()
    assert torch.equal(gm(torch.tensor([-1.0]), torch.tensor([3.0])), torch.tensor([2.0]))


def test_insert_and_replace():
    gm = simple()
    relu = next(n for n in gm.graph.nodes if n.name == "relu")
    with gm.graph.inserting_after(relu):
        neg = gm.graph.call_function(torch.neg, (relu,))
    relu.replace_all_uses_with(neg, lambda user: user is not neg)
    gm.graph.lint()
    gm.recompile()
    assert torch.equal(gm(torch.tensor([2.0]), torch.tensor([3.0])), torch.tensor([1.0]))


def test_lint_finds_a_use_before_its_definition():
    gm = simple()
    _, _, relu, add, _ = gm.graph.nodes
    add.append(relu)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        gm.graph.lint()


def test_dead_code_goes_and_what_has_effects_stays():
    def f(x):
        torch.exp(x).sum()
        torch.ops.aten.add_.Tensor(x, 1)
        torch.rand_like(x)
        torch._assert(x, "no")
        return x

    gm = fx.symbolic_trace(f)
    assert gm.graph.eliminate_dead_code()
    assert [n.op for n in gm.graph.nodes] == ["placeholder", *["call_function"] * 3, "output"]
    gm.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert [n.name for n in gm.graph.nodes] == ["x", "output"]


def test_methods_that_write_count_as_pure():
    def f(x):
        x.add_(1)
        return x

    gm = fx.symbolic_trace(f)
    assert gm.graph.eliminate_dead_code()  # PyTorch's rule
    assert [n.name for n in gm.graph.nodes] == ["x", "output"]


def test_all_six_kinds_by_hand():
    root = nn.Module()
    root.linear = nn.Linear(2, 2)
    root.w = nn.Parameter(torch.ones(2))
    g = fx.Graph()
    x = g.placeholder("x")
    h = g.call_module("linear", (x,))
    w = g.get_attr("w")
    s = g.call_function(operator.mul, (h, w))
    g.output((g.call_method("neg", (s,)), {"h": h}))
    gm = fx.GraphModule(root, g)
    a = torch.randn(3, 2)
    neg, extra = gm(a)
    assert torch.equal(neg, -root.linear(a)) and torch.equal(extra["h"], root.linear(a))
    assert gm.state_dict().keys() == root.state_dict().keys()


def test_deep_copies_are_independent():
    net = nn.Sequential(nn.Linear(2, 2))
    gm = fx.symbolic_trace(net)
    other = copy.deepcopy(gm)
    x = torch.ones(1, 2)
    assert torch.equal(other(x), gm(x))
    with torch.no_grad():
        getattr(other, "0").weight.add_(1)
    assert not torch.equal(other(x), gm(x))


def test_replace_pattern():
    gm = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * 2)
    matches = fx.replace_pattern(
        gm, lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(a - b)
    )
    assert len(matches) == 1
    gm.graph.lint()
    x, y = torch.tensor([1.0]), torch.tensor([1.0])
    assert torch.equal(gm(x, y), torch.tensor([1.0]))


def test_an_error_names_the_node():
    gm = fx.symbolic_trace(lambda x: x.view(7))
    with pytest.raises(RuntimeError) as error:
        fx.Interpreter(gm).run(torch.ones(3))
    assert "While executing %view" in str(error.value)
    assert "test_graph.py:" in str(error.value)


def test_interpreter_hooks_each_kind():
    class Doubled(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(target, args, kwargs) * 2

    assert (
        Doubled(fx.symbolic_trace(lambda x: torch.neg(x))).run(torch.tensor([1.0])).item() == -2.0
    )
