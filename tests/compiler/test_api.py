"""The public functions of `torch.compiler`, and what `compile` takes."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import compiler, fx, nn


def test_decorator_with_and_without_arguments():
    @torch.compile
    def f(x):
        "Adds one."
        return x + 1

    @torch.compile(fullgraph=True)
    def g(x):
        return x + 2

    assert f(torch.zeros(1)).item() == 1 and g(torch.zeros(1)).item() == 2
    assert f.__name__ == "f" and f.__doc__ == "Adds one."


def test_methods():
    class Model(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @torch.compile(fullgraph=True)
        def forward(self, x):
            return x * self.k

    a, b = Model(2.0), Model(3.0)
    assert (a(torch.ones(1)).item(), b(torch.ones(1)).item(), a(torch.ones(1)).item()) == (2, 3, 2)


def test_a_compiled_module_shares_everything():
    inner = nn.Linear(2, 2)
    c = torch.compile(inner)
    assert isinstance(c, nn.Module) and c._orig_mod is inner
    assert [p is q for p, q in zip(c.parameters(), inner.parameters(), strict=True)] == [True, True]
    assert list(c.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    c.eval()
    assert not inner.training and c.in_features == 2
    c.extra = 5
    assert inner.extra == 5


def test_kwargs_and_nested_containers():
    def f(pair, *, scale=1.0, more=None):
        return {"sum": (pair[0] + pair[1]) * scale, "parts": [more["x"], pair[0] * 2], "n": 3}

    c = torch.compile(f, fullgraph=True)
    x, y = torch.ones(2), torch.full((2,), 2.0)
    r = c((x, y), scale=2.0, more={"x": y})
    assert (
        r["sum"].tolist() == [6, 6]
        and r["parts"][0] is y
        and r["parts"][1].tolist() == [2, 2]
        and r["n"] == 3
    )


def test_bad_arguments():
    with pytest.raises(RuntimeError, match="Invalid backend: 'nope'"):
        torch.compile(lambda x: x, backend="nope")
    with pytest.raises(RuntimeError, match="Unrecognized mode"):
        torch.compile(lambda x: x, mode="fastest")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(lambda x: x, mode="default", options={})
    f = lambda x: x
    assert torch.compile(f, disable=True) is f


def test_a_users_backend_gets_the_graph_and_examples():
    seen = []

    def backend(gm, inputs):
        seen.append((gm, inputs))
        return gm.forward

    c = torch.compile(lambda x: torch.relu(x) * 2, backend=backend)
    assert c(torch.tensor([-1.0, 1.0])).tolist() == [0, 2]
    gm, inputs = seen[0]
    assert isinstance(gm, fx.GraphModule) and len(inputs) == 1
    assert [n.target.name for n in gm.graph.nodes if n.op == "call_function"] == ["relu", "mul"]


def test_disable_is_compiling_reset_and_backends():
    inside = []

    @compiler.disable
    def helper(x):
        return x + 1

    def f(x):
        return helper(x) * 2

    c = torch.compile(f)
    with pytest.warns(UserWarning, match="compiler.disable"):
        assert c(torch.ones(1)).item() == 4

    def g(x):
        inside[:] = []
        return x + (1 if compiler.is_compiling() else 2)

    assert not compiler.is_compiling()
    h = torch.compile(lambda x: x + (1 if compiler.is_compiling() else 2))
    assert h(torch.zeros(1)).item() == 1
    compiler.reset()
    assert h.segments == []
    assert compiler.list_backends() == ["inductor"]
    assert compiler.list_backends(None) == ["aot_eager", "eager", "inductor"]


def test_explain():
    out = compiler.explain(lambda x: torch.softmax(x, -1) * 2)(torch.ones(2, 3))
    assert (out.graph_count, out.graph_break_count, out.op_count) == (1, 0, 2)
    assert "_softmax" in str(out) and any("argument 0" in g for g in out.guards[0])
    with pytest.warns(UserWarning):
        broken = compiler.explain(lambda x: x * x.sum().item())(torch.ones(2))
    assert broken.graph_count == 0 and "reads a tensor's values" in broken.break_reasons[0][0]


def test_importing_torchlab_does_not_import_the_compiler():
    import subprocess
    import sys

    code = (
        "import sys, torchlab; print(any(m.startswith(('torchlab.compiler', 'torchlab.fx')) "
        "for m in sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "False"
    )


def test_nested_compiled_functions_become_one_graph():
    inner = torch.compile(lambda x: x * 2)
    outer = torch.compile(lambda x: inner(x) + 1)
    assert outer(torch.ones(1)).item() == 3


def test_marks_of_functions():
    assert torch.compiler.allow_in_graph(abs) is abs
    assert torch.compiler.allow_in_graph([abs, len]) == [abs, len]
    with pytest.raises(AssertionError, match="allow_in_graph expects a callable"):
        torch.compiler.allow_in_graph(3)

    @torch.compiler.assume_constant_result
    def three():
        return 3

    assert three() == 3 and three._dynamo_marked_constant
    assert torch.compile(lambda x: x * three())(torch.ones(1)).item() == 3
    assert torch.compiler.cudagraph_mark_step_begin() is None
    assert not torch.compiler.is_exporting()


def test_marks_of_tensors():
    def marks(mark, *args, **kwargs):
        x = torch.ones(2, 3)
        mark(x, *args, **kwargs)
        return x.__dict__

    dynamo = torch._dynamo
    dims = {"_has_dynamo_dim_marking": True}
    assert marks(dynamo.mark_static) == dims | {"_dynamo_static_indices": {0, 1}}
    assert marks(dynamo.mark_static, 1) == dims | {"_dynamo_static_indices": {1}}
    assert marks(dynamo.mark_dynamic, (0, 1), min=2)["_dynamo_dynamic_indices"] == {0, 1}
    assert marks(dynamo.maybe_mark_dynamic, 0) == dims | {"_dynamo_weak_dynamic_indices": {0}}
    assert marks(dynamo.mark_static_address) == {"_dynamo_static_input_type": "unguarded"}
    assert marks(dynamo.mark_static_address, guard=True) == {"_dynamo_static_input_type": "guarded"}
    with pytest.raises(TypeError, match="expects a tensor but received <class 'int'>"):
        dynamo.mark_static_address(3)
    assert dynamo.mark_static(nn.Linear) is None
    x = torch.ones(2)
    dynamo.mark_dynamic(x, 0)
    assert torch.compile(lambda x: x + 1)(x).tolist() == [2.0, 2.0]
    assert isinstance(torch.compile(nn.Linear(1, 1)), dynamo.eval_frame.OptimizedModule)
