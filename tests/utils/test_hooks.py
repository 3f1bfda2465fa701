"""`torchlab.utils.hooks`."""

from __future__ import annotations

import warnings
from collections import OrderedDict

import torchlab
from torchlab.utils import hooks


def test_a_handle_forgets_its_hook_in_all_tables() -> None:
    table, flags = OrderedDict(), OrderedDict()
    handle = hooks.RemovableHandle(table, extra_dict=flags)
    table[handle.id] = flags[handle.id] = print
    handle.remove()
    handle.remove()
    assert not table and not flags


def test_backward_hooks_around_a_forward_of_ones_own() -> None:
    module = torchlab.nn.Linear(2, 2)
    seen: list[tuple[str, list[float]]] = []

    def after(m: object, grad_input: tuple, grad_output: tuple) -> tuple:
        assert m is module
        seen.append(("after", grad_output[0].flatten().tolist()))
        return (grad_input[0] * 10,)

    def before(m: object, grad_output: tuple) -> None:
        seen.append(("before", grad_output[0].flatten().tolist()))

    x = torchlab.ones(1, 2, requires_grad=True)
    watch = hooks.BackwardHook(module, [after], [before])
    out = watch.setup_output_hook(module.forward(*watch.setup_input_hook((x,))))
    out.sum().backward()
    assert seen == [("before", [1.0, 1.0]), ("after", [1.0, 1.0])]
    torchlab.testing.assert_close(x.grad, 10 * module.weight.detach().sum(0, keepdim=True))


def test_hooks_that_files_leave_out() -> None:
    x = torchlab.ones(2, requires_grad=True)
    x.register_hook(lambda g: None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        hooks.warn_if_has_hooks(x)
        hooks.warn_if_has_hooks(torchlab.ones(2))
    assert len(said) == 1 and "will not be serialized" in str(said[0].message)

    y = torchlab.ones(2, requires_grad=True)
    y.register_hook(hooks.unserializable_hook(lambda g: None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hooks.warn_if_has_hooks(y)
