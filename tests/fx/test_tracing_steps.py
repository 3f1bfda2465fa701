"""A tracer that takes the steps of `trace` itself, as those of libraries do."""

from __future__ import annotations

import functools

import torchlab as torch
from torchlab import fx, nn
from torchlab.fx import _symbolic_trace as st


class Own(fx.Tracer):
    @st.compatibility(is_backward_compatible=True)
    def trace(self, root, concrete_args=None):
        self.root, fn = root, type(root).forward
        self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        self.graph = fx.Graph(tracer_cls=type(self))
        self.tensor_attrs: dict = {}
        assert not isinstance(root, st.ScriptObject) and isinstance(fn, st.FunctionType)
        fn_globals = fn.__globals__
        fn, args = self.create_args_for_root(fn, True, concrete_args)
        cache: dict = {}

        @functools.wraps(st._orig_module_getattr)
        def read(mod, attr):
            return self._module_getattr(attr, st._orig_module_getattr(mod, attr), cache)

        @functools.wraps(st._orig_module_call)
        def call(mod, *args, **kwargs):
            def forward(*args, **kwargs):
                return st._orig_module_call(mod, *args, **kwargs)

            return self.call_module(mod, forward, args, kwargs)

        with st._Patcher() as patcher:
            patcher.patch_method(nn.Module, "__getattr__", read, deduplicate=False)
            patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
            st._patch_wrapped_functions(patcher)
            st._autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
            self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
            assert st.is_fx_tracing()
        self.submodule_paths = None
        return self.graph


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.relu(self.a(x)) * self.scale


def test_steps():
    net = Net()
    call = nn.Module.__call__
    graph = Own().trace(net)
    assert [n.op for n in graph.nodes] == [
        "placeholder", "call_module", "call_function", "get_attr", "call_function", "output",
    ]  # fmt: skip
    assert nn.Module.__call__ is call and "__call__" not in nn.Module.__dict__
    assert not st.is_fx_tracing()
    x = torch.randn(4, 2)
    assert torch.equal(fx.GraphModule(net, graph)(x), net(x))
