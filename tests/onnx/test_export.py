"""ONNX models give what the modules give, by onnx's own evaluator and checker."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import numpy as np
import pytest

import torchlab as torch
from tests.export.programs import models
from tests.onnx.operators import operators
from torchlab import nn
from torchlab.export import Dim
from torchlab.utils import _pytree as pytree

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
reference = pytest.importorskip("onnx.reference")

torch.manual_seed(0)
MODELS, OPERATORS = models(torch), operators(torch)


def arrays(x):
    leaves = [t for t in pytree.tree_leaves(x) if t is not None]
    return [np.asarray(t.detach().numpy() if isinstance(t, torch.Tensor) else t) for t in leaves]


def check(module, args, shapes, batches):
    """Export with the first batch; evaluate with all of them."""
    program = torch.onnx.export(copy.deepcopy(module), args(batches[0]), dynamic_shapes=shapes)
    onnx.checker.check_model(program.model_proto, full_check=True)
    evaluator = reference.ReferenceEvaluator(program.model_proto)
    names = [i.name for i in program.model_proto.graph.input]
    for n in batches:
        x = args(n)
        with torch.no_grad():
            wanted = arrays(copy.deepcopy(module)(*copy.deepcopy(x)))
        given = dict(zip(names, arrays(x), strict=True))
        got = [np.asarray(a) for a in evaluator.run(None, given)]
        assert len(got) == len(wanted)
        for a, b, o in zip(got, wanted, program.model_proto.graph.output, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
            assert a.dtype == b.dtype or not b.shape
            said = [d.dim_param or d.dim_value for d in o.type.tensor_type.shape.dim]
            assert [d for d in said if isinstance(d, int)] == [
                m for m, d in zip(b.shape, said, strict=True) if isinstance(d, int)
            ]
    return program


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    module, args, shapes = MODELS[name]
    check(module, args, shapes, (3, 5, 1))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    class M(nn.Module):
        def forward(self, x):
            return OPERATORS[name](x)

    check(M(), lambda n: (torch.rand(n, 3, 4),), ({0: Dim("b", max=100)},), (6, 7, 2))


def test_a_batch_is_a_named_dim_and_flatten_follows_it():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(12, 2)

        def forward(self, x):
            return torch.relu(self.l(x.flatten(1)))

    program = check(M(), lambda n: (torch.randn(n, 3, 4),), {"x": {0: Dim("b", max=99)}}, (2, 7))
    g = program.model_proto.graph
    assert sorted(n.op_type for n in g.node) == ["Gemm", "Relu", "Reshape"]
    said = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (g.input[0], g.output[0])
    ]
    assert said == [["b", 3, 4], ["b", 2]]
    assert [i.name for i in g.initializer][:2] == ["l.weight", "l.bias"]
    assert (g.input[0].name, g.output[0].name) == ("x", "relu")
    assert program.model_proto.opset_import[0].version == 20
    facts = {p.key: p.value for p in g.node[1].metadata_props}
    assert "l: torchlab.nn" in facts["namespace"] and "test_export" in str(facts)


def test_names_and_derived_dims():
    class M(nn.Module):
        def forward(self, x, y):
            return x + 1, torch.cat([x, y])

    d = Dim("d")
    program = torch.onnx.export(
        M(), (torch.ones(4), torch.ones(3)), dynamic_shapes=({0: 2 * d}, {0: Dim("e")}),
        input_names=["first", "second"], output_names=["more", "both"],
    )  # fmt: skip
    g = program.model_proto.graph
    assert [v.name for v in (*g.input, *g.output)] == ["first", "second", "more", "both"]
    assert [
        v.type.tensor_type.shape.dim[0].dim_param for v in (*g.input, *g.output)
    ] == ["2*d", "e", "2*d", "2*d + e"]  # fmt: skip
    more, both = program(torch.ones(2), torch.zeros(5))
    assert more.tolist() == [2.0, 2.0] and both.shape == (7,)
    with pytest.raises(ValueError, match=r"2 inputs \(first, second\), 1 are given"):
        program(torch.ones(2))


@pytest.mark.parametrize("opset", [18, 20, 23])
def test_opsets(opset):
    m = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.GELU("tanh"), nn.LayerNorm(4))
    program = torch.onnx.export(m, (torch.ones(2, 4),), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset
    onnx.checker.check_model(program.model_proto, full_check=True)
    x = torch.randn(2, 4)
    torch.testing.assert_close(program(x)[0], m(x).detach(), atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="opset_version 8 is not one of 9 to"):
        torch.onnx.export(m, (x,), opset_version=8)


def test_older_opsets_are_converted_by_onnx_or_refused():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    program = torch.onnx.export(m, (torch.ones(2, 4),), opset_version=17, verify=True)
    assert program.model_proto.opset_import[0].version == 17
    with pytest.raises(torch.onnx.OnnxExporterError, match="Use opset_version=18 or later"):
        torch.onnx.export(nn.LayerNorm(4).eval(), (torch.ones(2, 4),), opset_version=9)


class Two(nn.Module):
    def forward(self, x, y):
        return x + 1, torch.cat([x, y])


def dims_of(program):
    g = program.model_proto.graph
    return {
        v.name: v.type.tensor_type.shape.dim[0].dim_param
        or v.type.tensor_type.shape.dim[0].dim_value
        for v in (*g.input, *g.output)
    }


def test_names_in_the_places_of_dims_and_dynamic_axes():
    args = torch.ones(4, 2), torch.ones(3, 2)
    named = torch.onnx.export(Two().eval(), args, dynamic_shapes={"x": {0: "n"}, "y": {0: "m"}})
    assert dims_of(named) == {"x": "n", "y": "m", "add": "n", "cat": "n + m"}
    program = torch.onnx.export(
        Two().eval(), args, input_names=["a", "b"], output_names=["o", "c"],
        dynamic_axes={"a": {0: "batch"}, "b": [0], "o": {0: "batch"}},
    )  # fmt: skip
    assert dims_of(program) == {"a": "batch", "b": "s1", "o": "batch", "c": "batch + s1"}
    assert program(torch.ones(2, 2), torch.ones(5, 2))[1].shape == (7, 2)
    with pytest.raises(ValueError, match=r"dynamic_axes name 'z', which is no input \(x, y\)"):
        torch.onnx.export(Two().eval(), args, dynamic_axes={"z": {0: "n"}})


def test_verify_compares_and_training_mode_warns(monkeypatch):
    m = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="while it is in training mode"):
        torch.onnx.export(m, (torch.ones(1, 2),), verify=True)
    monkeypatch.setattr(
        "torchlab.onnx._program.ONNXProgram.__call__", lambda *a, **k: (torch.zeros(1, 2) + 9,)
    )
    with pytest.raises(torch.onnx.OnnxExporterError, match="output 0 of the ONNX model is not"):
        torch.onnx.export(m.eval(), (torch.ones(1, 2),), verify=True)


def test_outputs_that_are_inputs_constants_or_the_same_value():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x):
            y = x + 1
            return x, y, y, self.w, 3, None, torch.zeros(2)

    program = torch.onnx.export(M(), (torch.ones(2),))
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert [t.tolist() for t in program(torch.zeros(2))] == [
        [0, 0], [1, 1], [1, 1], [1, 1], 3, [0, 0],
    ]  # fmt: skip


def test_files(tmp_path):
    m = nn.Linear(64, 32)
    path = tmp_path / "m.onnx"
    program = torch.onnx.export(m, (torch.ones(2, 64),), path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    program.save(tmp_path / "n.onnx", external_data=True)
    assert (tmp_path / "n.onnx.data").exists()
    x = np.ones((2, 64), np.float32)
    for file in ("m.onnx", "n.onnx"):
        made = reference.ReferenceEvaluator(str(tmp_path / file))
        (y,) = made.run(None, {made.input_names[0]: x})
        np.testing.assert_allclose(y, m(torch.ones(2, 64)).detach().numpy(), rtol=1e-4)


def test_all_that_is_missing_is_told_at_once_with_module_and_line():
    class Inner(nn.Module):
        def forward(self, x):
            return torch.cumprod(x, 0)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x) + torch.special.i0(x) + torch.rand_like(x)

    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError) as e:
        torch.onnx.export(Outer(), (torch.ones(2),))
    text = str(e.value)
    assert [name for name, _, _ in e.value.operators] == [
        "aten.cumprod.default", "aten.i0.default", "aten.rand_like.default",
    ]  # fmt: skip
    assert "in 'inner', Inner" in text and "in Outer" in text and text.count(__file__) == 3
    assert "draws random numbers" in text


def test_training_mode_is_refused_with_the_remedy():
    with pytest.raises(torch.onnx.errors.OnnxExporterError, match=r"call model\.eval\(\)"):
        torch.onnx.export(nn.BatchNorm1d(3), (torch.ones(2, 3),))
    with pytest.raises(torch.onnx.errors.OnnxExporterError, match=r"call model\.eval\(\)|dropout"):
        torch.onnx.export(nn.Dropout(), (torch.ones(2, 3),))


def test_what_torchscripts_exporter_had_is_refused():
    with pytest.raises(NotImplementedError, match="dynamo=True"):
        torch.onnx.export(nn.ReLU(), (torch.ones(2),), dynamo=False)
    with pytest.raises(NotImplementedError, match="torchlab has no report, export_params=False"):
        torch.onnx.export(nn.ReLU(), (torch.ones(2),), report=True, export_params=False)


def test_programs_know_that_they_are_exported():
    seen = []

    class M(nn.Module):
        def forward(self, x):
            seen.append(torch.onnx.is_in_onnx_export())
            return x + 1

    torch.onnx.export(M(), (torch.ones(2),))
    assert seen == [True] and not torch.onnx.is_in_onnx_export()
    exported = torch.export.export(M(), (torch.ones(2),))
    assert torch.onnx.export(exported)(torch.ones(2))[0].tolist() == [2, 2]


def test_without_onnx_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import torchlab as torch\n"
        "try: torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),))\n"
        "except ImportError as e: print(e)\n"
    )
    path = os.pathsep.join(sys.path)
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "pip install torchlab[onnx]" in out.stdout
