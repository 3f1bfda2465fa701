"""Graph modules: code, copies, files, submodules, hooks, errors; interpreters and transformers."""

from __future__ import annotations

import copy
import importlib.util
import pickle

import pytest

import torchlab as torch
from torchlab import fx, nn
from torchlab.fx import traceback as fx_traceback
from torchlab.fx.graph import _BoxedCodeGen


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.block = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        return self.block(torch.relu(self.first(x))) * self.scale + self.shift + torch.ones(2)


def test_pickles_run_and_keep_their_tensors():
    gm = fx.symbolic_trace(Net().eval())
    again = pickle.loads(pickle.dumps(gm))
    x = torch.randn(3, 2)
    assert torch.equal(again(x), gm(x)) and again.code == gm.code
    assert type(again).__name__ == "Net"


@pytest.mark.filterwarnings("ignore:Was not able to save")
def test_a_folder_is_a_package(tmp_path):
    gm = fx.symbolic_trace(Net().eval())
    gm.to_folder(tmp_path / "net", "Saved")
    spec = importlib.util.spec_from_file_location("saved_net", tmp_path / "net" / "module.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.randn(3, 2)
    assert torch.equal(module.Saved().eval()(x), gm(x))


def test_deep_copies_have_their_own_graph_and_keep_meta():
    gm = fx.symbolic_trace(Net())
    gm.meta["k"] = 1
    next(iter(gm.graph.nodes)).meta["here"] = 2
    other = copy.deepcopy(gm)
    assert other.graph is not gm.graph and other.graph.owning_module is other
    assert other.meta == {"k": 1} and next(iter(other.graph.nodes)).meta["here"] == 2
    assert other.scale is not gm.scale


def test_submodules_come_and_go():
    gm = fx.symbolic_trace(Net())
    assert gm.add_submodule("new.inner", nn.ReLU())
    assert not gm.add_submodule("first.weight.x", nn.ReLU())
    assert gm.delete_submodule("new") and not gm.delete_submodule("nothing")
    gm.add_submodule("unused", nn.ReLU())
    gm.delete_all_unused_submodules()
    names = [name for name, _ in gm.named_modules()]
    assert names == ["", "first", "block", "block.0", "block.1"]


def test_hooks_see_changes():
    gm = fx.symbolic_trace(lambda x: x + 1)
    seen = []
    gm._register_create_node_hook(lambda n: seen.append(f"+{n}"))
    gm._register_erase_node_hook(lambda n: seen.append(f"-{n}"))
    add = next(n for n in gm.graph.nodes if n.op == "call_function")
    with gm._set_replace_hook(lambda old, new, user: seen.append((str(old), new, str(user)))):
        with gm.graph.inserting_after(add):
            neg = gm.graph.call_function(torch.neg, add.args[:1])
        add.replace_all_uses_with(neg)
        gm.graph.erase_node(add)
    assert seen == ["+neg", ("add", "neg", "output"), "-add"]


def test_an_error_in_generated_code_shows_its_line(capsys):
    gm = fx.symbolic_trace(lambda x: x.view(7) + 1)
    with pytest.raises(RuntimeError, match="shape"):
        gm(torch.ones(3))
    told = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5" in told and "x.view(7)" in told


def test_readable_code_names_lines_and_shapes(capsys):
    gm = fx.symbolic_trace(Net().eval())
    fx.passes.shape_prop.ShapeProp(gm).propagate(torch.ones(3, 2))
    text = gm.print_readable()
    assert text in capsys.readouterr().out
    assert text.startswith("class Net(torch.nn.Module):\n    def forward(self, x")
    assert 'relu: "f32[3, 2]" = torch.relu(first)' in text
    assert "# File: " in text and "test_graph_module.py:" in text


def test_codegens_write_the_code():
    gm = fx.symbolic_trace(lambda x, y: x * 2 + y)
    gm.graph.set_codegen(_BoxedCodeGen())
    gm.recompile()
    given = [torch.ones(2), torch.ones(2)]
    assert torch.equal(gm(given), torch.full((2,), 3.0)) and given == []


def test_transformers_of_code_are_taken_back():
    gm = fx.symbolic_trace(lambda x: x + 1)
    before = gm.code

    def shout(earlier):
        return lambda body: ["import math\n", *(earlier(body) if earlier else body)]

    with gm.graph.on_generate_code(shout):
        assert "import math" in gm.recompile().src
    assert gm.recompile().src == before


def test_interpreters_start_from_known_values_and_empty_boxes():
    gm = fx.symbolic_trace(lambda x, y: (x + 1) * y)
    add = next(n for n in gm.graph.nodes if n.name == "add")
    run = fx.Interpreter(gm)
    y = torch.tensor([2.0])
    assert run.run(torch.zeros(1), y, initial_env={add: torch.tensor([5.0])}).item() == 10.0
    box = [torch.zeros(1), y]
    assert run.boxed_run(box).item() == 2.0 and box == []
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        run.run()


def test_transformers_change_calls():
    class Sharp(fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.relu:
                target = torch.sigmoid
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("abs" if target == "neg" else target, args, kwargs)

    made = Sharp(fx.symbolic_trace(lambda x: torch.relu(x).neg())).transform()
    assert [n.target for n in made.graph.nodes][1:3] == [torch.sigmoid, "abs"]


def test_facts_go_from_the_program_to_the_nodes():
    def f(x):
        with fx_traceback.annotate({"part": 1}):
            y = x + 1
        return y * 2

    with fx_traceback.preserve_node_meta():
        graph = fx.symbolic_trace(f).graph
    assert [n.meta.get("custom") for n in graph.nodes] == [None, {"part": 1}, None, None]


def test_sizes_as_nodes():
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2, 3)
    sizes = [graph.create_size_node(x, 1), graph.create_stride_node(x, 0)]
    graph.output((*sizes, graph.create_storage_offset_node(x)))
    assert [n.meta["val"] for n in sizes] == [3, 3]
    assert fx.GraphModule({}, graph)(torch.ones(4, 5)[1:]) == (5, 5, 5)
