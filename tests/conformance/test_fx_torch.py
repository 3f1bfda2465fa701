"""`torch.fx` against PyTorch: the same nodes, the same code, the same results of surgery."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import operator
import pickle
import sys
import types
import typing

import pytest

import torchlab
from tests.conformance import fx_programs
from torchlab import fx
from torchlab.fx.experimental.optimization import fuse
from torchlab.fx.experimental.proxy_tensor import make_fx
from torchlab.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torchlab.fx.passes.operator_support import create_op_support
from torchlab.fx.passes.shape_prop import ShapeProp
from torchlab.fx.passes.split_module import split_module
from torchlab.fx.subgraph_rewriter import replace_pattern_with_filters

torch = pytest.importorskip("torch")
for _name in (
    "fx", "fx.experimental.optimization", "fx.experimental.proxy_tensor",
    "fx.passes.infra.partitioner", "fx.passes.operator_support", "fx.passes.shape_prop",
    "fx.passes.split_module", "fx.subgraph_rewriter",
):  # fmt: skip
    importlib.import_module(f"torch.{_name}")

BOTH = (torchlab, torch)
NAMES = [*fx_programs.modules(torchlab), *fx_programs.functions(torchlab)]


def program(T, name):
    return {**fx_programs.modules(T), **fx_programs.functions(T)}[name]


def ours(text: str) -> str:
    return text.replace("torchlab", "torch")


def same(make) -> None:
    mine, theirs = make(torchlab), make(torch)
    assert ours(str(mine)) == ours(str(theirs))


@pytest.mark.parametrize("name", NAMES)
def test_code(name):
    same(lambda T: T.fx.symbolic_trace(program(T, name)).code)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_as_text(name):
    same(lambda T: T.fx.symbolic_trace(program(T, name)).graph)


@pytest.mark.parametrize("name", NAMES)
def test_nodes(name):
    def rows(T):
        graph = T.fx.symbolic_trace(program(T, name)).graph
        return [
            (n.op, n.name, n._pretty_print_target(n.target), n.args, n.kwargs, list(n.users),
             n.all_input_nodes, n.type, n.is_impure() if n.op != "call_module" else None)
            for n in graph.nodes
        ]  # fmt: skip

    same(rows)


@pytest.mark.parametrize("name", NAMES)
def test_passing_through(name):
    def codes(T):
        gm = T.fx.symbolic_trace(program(T, name))
        again = T.fx.symbolic_trace(gm)
        new = T.fx.Transformer(gm).transform()
        copied = copy.deepcopy(gm)
        text = str(copied)
        dead = copied.graph.eliminate_dead_code()
        return again.code, new.code, text, dead, copied.graph

    same(lambda T: "\n".join(map(str, codes(T))))


def test_tables(monkeypatch):
    rows = []
    fake = types.ModuleType("tabulate")
    fake.tabulate = lambda specs, headers: rows.append((specs, headers)) or ""
    monkeypatch.setitem(sys.modules, "tabulate", fake)
    torch.fx.symbolic_trace(program(torch, "residual")).graph.print_tabular()
    specs, headers = rows[0]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        fx.symbolic_trace(program(torchlab, "residual")).graph.print_tabular()
    head, _, *lines = out.getvalue().splitlines()
    assert head.split() == headers
    assert [line.split() for line in lines] == [" ".join(map(str, s)).split() for s in specs]


def test_annotations():
    def make(T):
        g = T.fx.Graph()
        x = g.placeholder("x", T.Tensor)
        y = g.placeholder("y", typing.List[T.Tensor])  # noqa: UP006
        z = g.placeholder("z", typing.Optional[int], None)  # noqa: UP045
        s = g.call_function(operator.add, (x, z), type_expr=T.Tensor)
        g.output((s, y), typing.Tuple[T.Tensor, typing.List[T.Tensor]])  # noqa: UP006
        return str(g) + g.python_code("self").src

    same(make)


def test_every_kind_of_argument():
    class Pair(typing.NamedTuple):
        a: typing.Any
        b: typing.Any

    def make(T):
        g = T.fx.Graph()
        x = g.placeholder("x")
        for value in (
            {"a": x}, set(), 1.5, -2, 1j, 'q"', b"1", T.float32, T.device("cpu"), (x,), (), [],
            T.contiguous_format, T.strided, T.Size([1]), slice(x, 2), range(3), None, ..., True,
            float("nan"), -float("inf"),
        ):  # fmt: skip
            g.call_function(T.cat, (value,))
        for fn in (operator.iadd, operator.setitem, operator.not_, operator.is_, operator.contains):
            count = {"setitem": 3, "not_": 1}.get(fn.__name__, 2)
            g.call_function(fn, (x, 1, 2)[:count])
        g.call_function(getattr, (x, "a b"))
        g.call_function(len, (x,), name="len")
        g.call_method("__call__", (x,))
        g.call_function(T.ops.aten.add.Tensor, (x, x))
        g.output(None)
        return str(g) + g.python_code("self").src

    same(make)


REWRITES = {
    "one": (
        lambda T: lambda a, b: T.relu(T.relu(a) + b) + a,
        lambda T: lambda x, y: T.relu(x) + y,
        lambda T: lambda x, y: T.sigmoid(x) - y,
    ),
    "two results": (
        lambda T: lambda a: T.relu(a) + T.sigmoid(a) * 3,
        lambda T: lambda x: (T.relu(x), T.sigmoid(x)),
        lambda T: lambda x: (T.exp(x), T.log(x)),
    ),
    "a literal stands for an input": (
        lambda T: lambda a: T.add(a, 2, alpha=3).sum(),
        lambda T: lambda x, y: T.add(x, y, alpha=3),
        lambda T: lambda x, y: x - y,
    ),
    "an inner value is used outside": (
        lambda T: lambda a: (lambda r: (r.neg(), r))(T.relu(a)),
        lambda T: lambda x: T.relu(x).neg(),
        lambda T: lambda x: x.exp(),
    ),
    "none": (
        lambda T: lambda a: T.relu(a),
        lambda T: lambda x: T.exp(x),
        lambda T: lambda x: x,
    ),
    "chains overlap": (
        lambda T: lambda a: T.neg(T.neg(T.neg(a))),
        lambda T: lambda x: T.neg(T.neg(x)),
        lambda T: lambda x: x.abs(),
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_replace_pattern(name):
    def make(T):
        target, pattern, replacement = (f(T) for f in REWRITES[name])
        gm = T.fx.symbolic_trace(target)
        matches = T.fx.replace_pattern(gm, pattern, replacement)
        return f"{matches}\n{gm.code}"

    same(make)


def test_replace_pattern_with_filters():
    def make(T):
        gm = T.fx.symbolic_trace(lambda a: (a * 3).sum(-1) + (a * 4).sum(-1))
        replace = (
            replace_pattern_with_filters
            if T is torchlab
            else torch.fx.subgraph_rewriter.replace_pattern_with_filters
        )
        done = replace(
            gm,
            lambda x: (x * 5).sum(-1),
            lambda x: x.neg(),
            [lambda match, original, pattern: 4 in [n.args[1] for n in match.nodes_map.values()
                                                    if getattr(n, "name", "")[:3] == "mul"]],
            ignore_literals=True,
        )  # fmt: skip
        return f"{done}\n{gm.code}"

    same(make)


@pytest.mark.parametrize("every", [1, 2, 3, 100])
@pytest.mark.parametrize("name", ["residual", "attention", "functionals", "literals"])
def test_split_module(name, every):
    def make(T):
        gm = T.fx.symbolic_trace(program(T, name))
        split = split_module if T is torchlab else torch.fx.passes.split_module.split_module
        count = [0]

        def which(node):
            count[0] += 1
            return count[0] // every

        renamed = {}
        made = split(gm, gm, which, renamed)
        parts = [f"{k}: {m.code}" for k, m in made.named_children()]
        return "\n".join([str(made.graph), made.code, *parts, str(renamed)])

    same(make)


def test_partitions():
    def make(T):
        gm = T.fx.symbolic_trace(program(T, "residual"))
        if T is torchlab:
            partitioner, support = CapabilityBasedPartitioner, create_op_support
        else:
            partitioner = torch.fx.passes.infra.partitioner.CapabilityBasedPartitioner
            support = torch.fx.passes.operator_support.create_op_support
        takes = support(lambda modules, node: node.op == "call_function")
        fused = partitioner(gm, takes, allows_single_node_partition=True).partition_and_fuse()
        return str(fused.graph) + "".join(getattr(m, "code", "") for m in fused.children())

    same(make)


def test_shapes():
    def make(T):
        gm = T.fx.symbolic_trace(program(T, "convolutions"))
        prop = ShapeProp if T is torchlab else torch.fx.passes.shape_prop.ShapeProp
        prop(gm).propagate(T.ones(1, 1, 5, 5))
        return [n.meta["tensor_meta"] for n in gm.graph.nodes]

    same(make)


def test_fused_batch_norms():
    def make(T):
        net = program(T, "convolutions").eval()
        made = (fuse if T is torchlab else torch.fx.experimental.optimization.fuse)(net)
        return made.code + str(made)

    same(make)


def test_concrete_arguments():
    def make(T):
        ph = T.fx.PH if T is torchlab else torch.fx._symbolic_trace.PH
        f = T.fx.symbolic_trace(
            lambda x, y: {"o": x["a"] + y[0] * x["b"]},
            concrete_args={"x": {"a": ph, "b": 3}, "y": [ph, ph]},
        )
        return f.code + str(f.graph)

    same(make)
    traced = fx.symbolic_trace(lambda x: x["a"] + 1, concrete_args={"x": {"a": fx.PH}})
    assert torchlab.equal(traced({"a": torchlab.zeros(2)}), torchlab.ones(2))
    assert torchlab.equal(fx.Interpreter(traced).run({"a": torchlab.zeros(2)}), torchlab.ones(2))


WRONG = {
    "branch": lambda x: x if x.sum() > 0 else -x,
    "loop": lambda x: list(x),
    "length": lambda x: len(x),
    "int": lambda x: int(x),
    "range": lambda x: range(x),
    "contained": lambda x: x in [1],
    "stars": lambda x: {**x},
    "set an item": lambda x: operator.setitem(x, 0, 1),
    "an object": lambda x: x + object(),
    "a set": lambda x: x.add({1, 2}),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    messages = []
    for T in BOTH:
        with pytest.raises(Exception) as error:
            T.fx.symbolic_trace(WRONG[name])
        messages.append((type(error.value).__name__, str(error.value)))
    assert messages[0] == messages[1]


def surgery(T):
    """What goes wrong with nodes and graphs, as (class, message)."""
    said = []

    def tried(fn):
        try:
            said.append(str(fn()))
        except Exception as e:
            said.append(f"{type(e).__name__}: {e}")

    g, other = T.fx.Graph(), T.fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(T.add, (x, [y]), {"alpha": 2})
    g.output(a)
    q = other.placeholder("q")
    tried(lambda: g.create_node("foo", "x"))
    tried(lambda: g.create_node("call_function", "x"))
    tried(lambda: g.create_node("placeholder", 1))
    tried(lambda: g.erase_node(x))
    tried(lambda: g.erase_node(q))
    tried(lambda: other.inserting_before(x))
    tried(lambda: other.inserting_after(x))
    tried(lambda: other.output_node())
    tried(lambda: x.append(q))
    tried(lambda: a.insert_arg(5, 1))
    tried(lambda: a.update_arg(5, 1))
    tried(lambda: a.args[1].append(1))
    tried(lambda: a.kwargs.update(b=1))
    tried(lambda: T.fx.GraphModule({}, _calling(T, "lin")))
    tried(lambda: T.fx.GraphModule(3, g))
    x.append(a)
    a.insert_arg(1, y)
    a.update_kwarg("beta", x)
    tried(lambda: g.lint())
    y.append(a)
    tried(lambda: (a.args, a.kwargs, list(x.users), list(y.users), x < a, a < y))
    a.name = "x"
    tried(lambda: g.lint())
    tried(lambda: y.replace_all_uses_with(x))
    tried(lambda: (a.args, y.users))
    tried(lambda: g)
    return said


def _calling(T, path):
    g = T.fx.Graph()
    g.output(g.call_module(path, ()))
    return g


def test_surgery():
    assert [ours(s) for s in surgery(torchlab)] == [ours(s) for s in surgery(torch)]


def test_pickles_and_generated_code():
    gm = pickle.loads(pickle.dumps(fx.symbolic_trace(program(torchlab, "attention"))))
    their = pickle.loads(pickle.dumps(torch.fx.symbolic_trace(program(torch, "attention"))))
    assert ours(gm.code) == their.code and list(gm.state_dict()) == list(their.state_dict())


TRACED = {
    "products": lambda T: lambda x: (T.relu(x @ x).sum() * 2).exp(),
    "views": lambda T: lambda x: x.t().reshape(-1)[1:4].unsqueeze(0).expand(2, 3),
    "in place": lambda T: lambda x: (x * 2).add_(1).mul_(x),
    "parts": lambda T: lambda x: T.cat([x, x]).chunk(2),
    "topk": lambda T: lambda x: T.topk(x, 1),
    "constant": lambda T: lambda x: x * T.tensor([1.0, 2.0]),
    "nested": lambda T: lambda x: [x, {"a": x.neg(), "b": None}],
    "layer norm": lambda T: lambda x: T.nn.functional.layer_norm(T.softmax(x, -1), (2,)),
    "made": lambda T: lambda x: T.ones(2) + x.shape[0] + T.zeros_like(x),
    "converted": lambda T: lambda x: x.to(T.float64).sum(0),
    "gradient": lambda T: lambda x: T.autograd.grad((x.exp() * 2).sum(), x)[0],
    "gradient of a layer": lambda T: (
        lambda x: T.autograd.grad(T.nn.functional.linear(x, x).relu().sum(), [x])
    ),
    "a number": lambda T: lambda x: x.sum().item() + x,
    "a branch": lambda T: lambda x: x if x.sum() > 0 else -x,
}


@pytest.mark.parametrize("name", TRACED)
def test_make_fx(name):
    def make(T):
        x = T.arange(4.0).reshape(2, 2).requires_grad_("gradient" in name)
        trace = make_fx if T is torchlab else torch.fx.experimental.proxy_tensor.make_fx
        try:
            gm = trace(TRACED[name](T))(x)
        except RuntimeError as e:
            return str(e)
        return gm.code + str(gm.graph)

    same(make)


def test_make_fx_with_decompositions():
    def make(T):
        trace = make_fx if T is torchlab else torch.fx.experimental.proxy_tensor.make_fx
        table = {T.ops.aten.relu.default: lambda x: T.maximum(x, T.zeros_like(x))}
        return trace(lambda x: T.relu(x) + 1, table)(T.ones(2)).code

    same(make)
