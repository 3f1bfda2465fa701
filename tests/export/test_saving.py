"""Exported programs in files: the same program comes back, and nothing is run to read it."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import torchlab as torch
from tests.export.programs import models
from tests.export.test_export import assert_close
from torchlab import nn
from torchlab.export import Dim, export, load, save

torch.manual_seed(0)
MODELS = models(torch)


def again(program, **kwargs):
    buffer = io.BytesIO()
    save(program, buffer)
    buffer.seek(0)
    return load(buffer, **kwargs)


@pytest.mark.parametrize("name", MODELS)
def test_models_come_back(name):
    module, args, shapes = MODELS[name]
    program = export(module, args(3), dynamic_shapes=shapes)
    for made in (program, program.run_decompositions()):
        loaded = again(made)
        assert loaded.graph_module.code == made.graph_module.code
        assert str(loaded.graph_signature) == str(made.graph_signature)
        assert str(loaded.range_constraints) == str(made.range_constraints)
        assert list(loaded.state_dict) == list(made.state_dict)
        for n in (5, 1):
            x = args(n)
            assert_close(loaded.module()(*x), made.module()(*x))
        assert [str(n.meta.get("val")) for n in loaded.graph.nodes] == [
            str(n.meta.get("val")) for n in made.graph.nodes
        ]
        assert again(loaded).graph_module.code == made.graph_module.code


def test_checks_names_and_later_passes_survive(tmp_path):
    m = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
    program = export(m, (torch.ones(6, 4),), dynamic_shapes=({0: 2 * Dim("d", max=8)},))
    path = tmp_path / "m.pt2"
    save(program, path, extra_files={"note": "words"})
    extra = {"note": ""}
    loaded = load(path, extra_files=extra)
    assert extra == {"note": "words"}
    with pytest.raises(AssertionError, match=r"input\.size\(\)\[0\] % 2 == 0"):
        loaded.module()(torch.ones(5, 4))
    with pytest.raises(AssertionError, match="Guard failed"):
        loaded.module()(torch.ones(18, 4))
    assert isinstance(loaded.state_dict["0.weight"], nn.Parameter)
    assert "addmm" in loaded.run_decompositions().graph_module.code
    relu = next(n for n in loaded.graph.nodes if n.name == "linear")
    assert relu.meta["nn_module_stack"]["0"] == ("0", "torchlab.nn.linear.Linear")
    half = export(nn.Linear(2, 2).bfloat16(), (torch.ones(1, 2, dtype=torch.bfloat16),))
    assert torch.equal(again(half).state_dict["weight"], half.state_dict["weight"])


def test_what_has_no_form_is_refused():
    class Point:
        def __init__(self, x):
            self.x = x

    class M(nn.Module):
        def forward(self, p):
            return p.x + 1

    torch.utils._pytree.register_pytree_node(
        Point, lambda p: ([p.x], None), lambda values, context: Point(*values)
    )
    program = export(M(), (Point(torch.ones(2)),))
    with pytest.raises(ValueError, match="contain a Point; lists, tuples and dicts can be saved"):
        save(program, io.BytesIO())
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        save(nn.ReLU(), io.BytesIO())


def _altered(change):
    buffer = io.BytesIO()
    save(export(nn.ReLU(), (torch.ones(2),)), buffer)
    with zipfile.ZipFile(buffer) as z:
        data = json.loads(z.read("program.json"))
    change(data)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as z:
        z.writestr("program.json", json.dumps(data))
    made.seek(0)
    return made


@pytest.mark.parametrize("target", ["os::system.default", "system", "aten::__class__.mro"])
def test_a_file_cannot_name_what_is_no_operator(target):
    def change(data):
        next(n for n in data["nodes"] if n["op"] == "call_function")["target"] = target

    with pytest.raises((ValueError, KeyError, AttributeError)):
        load(_altered(change))


def test_other_files_are_refused():
    with pytest.raises(ValueError, match="no program that torchlab's"):
        load(io.BytesIO(b"not a zip"))
    with pytest.raises(ValueError, match="its format is 99"):
        load(_altered(lambda data: data.update(format=99)))
    empty = io.BytesIO()
    np.savez(empty, a=np.ones(2))
    empty.seek(0)
    with pytest.raises(ValueError, match=r"no program\.json"):
        load(empty)
