"""Exported programs give what the module gives, for other sizes too."""

from __future__ import annotations

import copy

import pytest

import torchlab as torch
from tests.export.programs import models
from torchlab import compiler, nn
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


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.l = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.l.weight = self.e.weight

    def forward(self, i):
        return self.l(self.e(i))


def test_tied_parameters_keep_both_names_and_stay_one():
    m = Tied()
    program = export(m, (torch.tensor([1, 3]),))
    assert program.graph_signature.parameters == ("e.weight", "l.weight")
    made = program.module()
    assert made.e.weight is made.l.weight
    assert_close(made(torch.tensor([0, 4])), m(torch.tensor([0, 4])))


def test_keywords_keep_their_own_names_and_order():
    class M(nn.Module):
        def forward(self, *args, k, **others):
            return args[0] + k, others["a"], others["a_b"]

    one = torch.ones(2)
    program = export(M(), (one,), {"a_b": one * 2, "k": one, "a": one * 3})
    assert program.graph_signature.user_inputs == ("args_0", "a_b", "k", "a")
    got = program.module()(one, a=one * 5, k=one, a_b=one * 4)
    assert [float(t[0]) for t in got] == [2, 5, 4]


def test_a_value_whose_geometry_is_written_is_followed():
    class M(nn.Module):
        def forward(self, x):
            y = x * 2
            y.squeeze_(-1)
            return y, torch.quantile(x, 0.5)

    program = export(M(), (torch.ones(3, 1),))
    assert [s.arg.name for s in program.graph_signature.output_specs][0] != "mul"
    x = torch.randn(3, 1)
    for made in (program, program.run_decompositions()):
        assert_close(made.module()(x), M()(x))


def test_constants_that_an_operators_parts_make_are_constants_of_the_program():
    class M(nn.Module):
        def forward(self, x):
            return torch.combinations(x)

    program = export(M(), (torch.ones(4),)).run_decompositions()
    assert any(n.startswith("decomposed_tensor") for n in program.constants)
    x = torch.randn(4)
    assert_close(program.module()(x), torch.combinations(x))


def test_checks_in_the_program():
    class M(nn.Module):
        def forward(self, x):
            torch._check(x.shape[0] >= 2, lambda: f"{x.shape[0]} rows")
            return x.reshape(x.shape[0] * 2)

    made = export(M(), (torch.ones(3, 2),), dynamic_shapes=({0: Dim("b")},)).module()
    assert made(torch.ones(4, 2)).shape == (8,)
    with pytest.raises(RuntimeError, match="^1 rows"):
        M()(torch.ones(1, 2))
    with pytest.raises(TypeError, match="cond must be a bool, but got a Tensor"):
        torch._check(torch.ones(()) > 0)
    with pytest.raises(IndexError, match="Expected cond to be True"):
        torch._check_index(False)
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(KeyError, match="why"):
        torch._check_with(KeyError, False, lambda: "why")
    torch._check_with(KeyError, True, lambda: "why")
    with pytest.raises(AssertionError, match="error_type must be a subclass of Exception"):
        torch._check_with(UserWarning, False, lambda: "why")
    with pytest.raises(ValueError, match="why"):
        torch._check_tensor_all_with(ValueError, torch.tensor([True, False]), lambda: "why")
    with pytest.raises(TypeError, match="must have dtype torch.bool, but got torch.int64"):
        torch._check_tensor_all(torch.tensor([1]))


def test_a_program_can_ask_whether_it_is_exported():
    class M(nn.Module):
        def forward(self, x):
            asked.append((compiler.is_compiling(), compiler.is_exporting()))
            asked.append(compiler.is_dynamo_compiling())
            return x + 1

    asked = []
    export(M(), (torch.ones(2),), strict=False)
    M()(torch.ones(2))
    assert asked == [(True, True), False, (False, False), False]


def test_cond_is_both_branches_and_a_choice():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(2, 2)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: (self.l(x), x + 1), lambda x: (x, x - 1), (x,))

    m = M()
    made = export(m, (torch.ones(3, 2),), dynamic_shapes=({0: Dim("b")},)).module()
    for x in (torch.ones(4, 2), -torch.ones(4, 2)):
        assert_close(made(x), m(x))

    class Differ(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], (x,))

    with pytest.raises(RuntimeError, match=r"float32 \[3\] and torch.float32 \[1\]"):
        export(Differ(), (torch.ones(3),))
