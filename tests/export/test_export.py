"""Exported programs give what the module gives, for other sizes too."""

from __future__ import annotations

import copy

import pytest

import torchlab as torch
from tests.export.programs import models
from torchlab import nn
from torchlab.export import Dim, ExportedProgram, export
from torchlab.export.graph_signature import InputKind, OutputKind

torch.manual_seed(0)
MODELS = models(torch)


def assert_close(a, b):
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for k in a:
            assert_close(a[k], b[k])
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_close(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("name", MODELS)
def test_the_program_is_the_module_for_other_batches(name):
    module, args, shapes = MODELS[name]
    before = {k: v.clone() for k, v in module.state_dict().items()}
    program = export(module, args(3), dynamic_shapes=shapes)
    assert isinstance(program, ExportedProgram)
    for k, v in module.state_dict().items():  # the module is as it was
        assert torch.equal(v, before[k])
    lowered = program.run_decompositions()
    assert not any(
        str(n.target).split(".")[1].endswith("_")
        for n in lowered.graph.nodes
        if str(n.target).startswith("aten.")
    )
    for made in (program, lowered):
        made = copy.deepcopy(made).module()
        reference = copy.deepcopy(module)
        for n in (3, 7, 1):
            x = args(n)
            assert_close(made(*x), reference(*x))
        for k, v in reference.state_dict().items():
            assert_close(made.state_dict()[k], v)


def test_the_signature_names_what_the_graph_needs():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 2)
            self.register_buffer("n", torch.zeros(2))
            self.register_buffer("v", torch.ones(2), persistent=False)
            self.c = torch.ones(2)

        def forward(self, x, scale=2, *, k):
            self.n.mul_(scale)
            x.add_(1)
            return self.l(x) + self.n + self.v + self.c, x.shape[0], None, 3, k

    program = export(M(), (torch.ones(2, 3),), {"k": torch.ones(1)},
                     dynamic_shapes={"x": {0: Dim("b")}, "k": None})  # fmt: skip
    s = program.graph_signature
    assert (s.parameters, s.buffers) == (("l.weight", "l.bias"), ("n", "v"))
    assert s.non_persistent_buffers == ("v",) and s.lifted_tensor_constants == ("c",)
    assert s.user_inputs == ("x", "k")
    assert s.user_outputs[1:] == ("sym_size_int", None, 3, "k")
    assert [x.name for x in program.graph.find_nodes(op="placeholder")] == [
        "p_l_weight", "p_l_bias", "b_n", "b_v", "c_c", "x", "k",
    ]  # fmt: skip
    assert set(program.state_dict) == {"l.weight", "l.bias", "n"}
    assert set(program.constants) == {"v", "c"}
    assert [str(p) for p in program.range_constraints.items()] == ["(s0, VR[0, int_oo])"]
    assert [n for n, _ in program.named_parameters()] == ["l.weight", "l.bias"]
    assert [n for n, _ in program.named_buffers()] == ["n", "v"]
    assert program.call_spec.in_spec.num_leaves == 2
    assert [c.fqn for c in program.module_call_graph] == ["", "l"]
    low = program.run_decompositions().graph_signature
    assert list(low.buffers_to_mutate.values()) == ["n"]
    assert list(low.user_inputs_to_mutate.values()) == ["x"]
    assert low.output_specs[0].kind == OutputKind.BUFFER_MUTATION
    assert low.input_specs[0].kind == InputKind.PARAMETER
    assert set(program.module().state_dict()) == {"l.weight", "l.bias", "n"}
    x = torch.ones(5, 3)
    y = program.module()(x, k=torch.ones(1))
    assert y[1] == 5 and float(x[0, 0]) == 2
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(2, 3))
    for mode in (program.module().eval, program.module().train):
        with pytest.raises(NotImplementedError, match=r"Calling (eval|train)\(\)"):
            mode()


def test_nodes_know_the_module_and_the_line():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    nodes = list(export(m, (torch.ones(1, 2),)).graph.nodes)
    relu = next(n for n in nodes if n.name == "relu")
    assert list(relu.meta["nn_module_stack"]) == ["", "1"]
    assert relu.meta["origin"].rpartition(":")[0] == __file__


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((torch.ones(100, 2),), r"Guard failed: x\.size\(\)\[0\] <= 99"),
        ((torch.ones(3, 3),), r"Guard failed: x\.size\(\)\[1\] == 2"),
        ((torch.ones(3),), r"Guard failed: x\.dim\(\) == 2"),
        ((1,), r"Guard failed: isinstance\(x, torch\.Tensor\)"),
    ],
)
def test_a_call_checks_sizes(args, said):
    class M(nn.Module):
        def forward(self, x):
            return x + 1

    made = export(M(), (torch.ones(4, 2),), dynamic_shapes=({0: Dim("b", max=99)},)).module()
    with pytest.raises(AssertionError, match=said):
        made(*args)
    assert made(torch.ones(1, 2)).shape == (1, 2)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        made(torch.ones(4, 2), torch.ones(4, 2))
    with pytest.raises(ValueError, match="kwarg keyword mismatch"):
        made(torch.ones(4, 2), y=1)


def test_values_that_the_program_was_exported_for_are_checked():
    class M(nn.Module):
        def forward(self, x, n):
            return x * n

    made = export(M(), (torch.ones(4, 2), 3)).module()
    assert float(made(torch.ones(4, 2), 3)[0, 0]) == 3
    with pytest.raises(AssertionError, match="Guard failed: n == 3"):
        made(torch.ones(4, 2), 4)


def test_bad_input():
    with pytest.raises(ValueError, match=r"an instance of `torch\.nn\.Module`"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(torch._dynamo.exc.UserError, match="Expecting `args` to be a tuple"):
        export(nn.ReLU(), torch.ones(2))
    with pytest.raises(NotImplementedError, match="strict=False"):
        export(nn.ReLU(), (torch.ones(2),), strict=True)


def test_what_only_data_can_tell_is_an_error_with_the_line():
    class Branch(nn.Module):
        def forward(self, x):
            y = x.sum()
            return x if y > 0 else -x

    class Pick(nn.Module):
        def forward(self, x):
            return (x + 1)[x > 0]

    with pytest.raises(
        torch._dynamo.exc.UserError, match=r"number that only the data.*test_export"
    ):
        export(Branch(), (torch.ones(2),))
    with pytest.raises(torch._dynamo.exc.UserError, match=r"shape that only the data can tell"):
        export(Pick(), (torch.ones(2),))
