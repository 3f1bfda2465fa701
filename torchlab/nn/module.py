"""`nn.Module`: the base of everything that has parameters.

A module is a callable that knows its parameters, buffers and submodules, because assigning one
to an
attribute registers it. What it can do is spread over its parts: being called (`_calls`), walking
its
tree (`_traversal`), converting its tensors (`_conversion`), saving and loading (`_state`).

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.Module.html
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from torchlab._core.dispatch import registry
from torchlab._core.hooks import HookDict
from torchlab._core.tape import AccumulateGrad, edge_of
from torchlab._core.tensor import Parameter, Tensor
from torchlab.nn._calls import GLOBAL, Calls
from torchlab.nn._conversion import Conversion
from torchlab.nn._state import State
from torchlab.nn._traversal import Traversal
from torchlab.nn._typename import typename
from torchlab.nn.parameter import Buffer, is_parameter

_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_new_attribute = object.__setattr__
T_destination = TypeVar("T_destination", bound=dict[str, Any])
"""The type of a state dict that the caller brings along."""


def _check_name(owner: Any, what: str, name: Any, table: dict[str, Any]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} name should be a string. Got {typename(name)}")
    if "." in name:
        got = f", got: {name}" if what == "module" else ""
        raise KeyError(f'{what} name can\'t contain "."{got}')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')
    if hasattr(owner, name) and name not in table:
        raise KeyError(f"attribute '{name}' already exists")


def _forget(owner: Any, name: str, *tables: str) -> None:
    """Make room for a registration: no other table, nor the plain attributes, may hide it."""
    own = owner.__dict__
    own.pop(name, None)
    for table in tables:
        own[table].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


class Module(Calls, Traversal, Conversion, State):
    """Subclass it, create layers in `__init__` after `super().__init__()`, compute in `forward`."""

    training: bool
    T_destination = T_destination
    call_super_init = False
    dump_patches = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Functions of torch that are attributes of a class do not become its methods: PyTorch's
        are written in C. `conv = torch.conv2d` is called as `self.conv(x, weight)`."""
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            if registry.is_generated(value):
                setattr(cls, name, staticmethod(value))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for name in _HOOKS:
            own[name] = HookDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:
        """Compute the module's result. Every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # ---- registering -----------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Enter a tensor that belongs to the module's state but is no parameter.

        persistent: whether `state_dict` has it. Raises AttributeError before `Module.__init__`,
        KeyError
        for a bad or taken name, TypeError if `tensor` is no tensor.
        """
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or "
                "None required)"
            )
        for hook in GLOBAL.buffer.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Enter a parameter; raises as `register_buffer`, and ValueError for a computed tensor."""
        parameters = self.__dict__.get("_parameters")
        if parameters is None:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, parameters)
        if param is not None:
            if not is_parameter(param):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            e = edge_of(param)
            if e is not None and type(e) is not AccumulateGrad:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    "be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            for hook in GLOBAL.parameter.values():
                replaced = hook(self, name, param)
                param = param if replaced is None else replaced
        parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Enter a submodule under `name`; raises TypeError or KeyError as `register_buffer`."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        self._modules[name] = _hooked(self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """As `add_module`."""
        self.add_module(name, module)

    # ---- attributes ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__  # unrolled: every use of a weight comes through here
        if (found := own.get("_parameters")) is not None and name in found:
            return found[name]
        if (found := own.get("_buffers")) is not None and name in found:
            return found[name]
        if (found := own.get("_modules")) is not None and name in found:
            return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters = own.get("_parameters")
        if is_parameter(value):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _forget(self, name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            _forget(self, name, "_parameters", "_buffers")
            modules[name] = _hooked(self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = _hooked(self, name, value)
            return
        buffers = own.get("_buffers")
        if isinstance(value, Tensor) and isinstance(value, Buffer):
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            _forget(self, name, "_parameters", "_modules")
            self.register_buffer(name, value, value.persistent)  # type: ignore[attr-defined]
            return
        if buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, "
                    "torch.Tensor or None expected)"
                )
            for hook in GLOBAL.buffer.values():
                replaced = hook(self, name, value)
                value = value if replaced is None else replaced
            buffers[name] = value
            return
        _new_attribute(self, name, value)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._modules,
            *self._buffers,
        }
        return sorted(n for n in names if not n[:1].isdigit())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module's forward in place; the arguments are those of `torch.compile`.
        Copies and files of the module are not compiled."""
        compiled = sys.modules["torchlab"].compile(self.forward, *args, **kwargs)
        self.__dict__["forward"] = compiled
        self.__dict__["_compiled_forward"] = compiled

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.pop("_compiled_forward", None) is not None:
            del state["forward"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:  # a module pickled by an older version may lack some
            self.__dict__.setdefault(name, HookDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- mode ------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Any:
        """Training mode for this module and all below: dropout drops, batch norm learns."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Evaluation mode: `train(False)`."""
        return self.train(False)

    # ---- text ------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of the module's repr. Override it."""
        return ""

    def __repr__(self) -> str:
        children = [
            f"({name}): {indented(repr(module), 2)}" for name, module in self._modules.items()
        ]
        return layout_repr(self._get_name(), self.extra_repr(), children)


def _hooked(parent: Module, name: str, module: Any) -> Any:
    for hook in GLOBAL.module.values():
        replaced = hook(parent, name, module)
        module = module if replaced is None else replaced
    return module


def indented(text: str, spaces: int) -> str:
    """All lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def layout_repr(name: str, extra: str, children: list[str]) -> str:
    """`Name(extra)` on one line where that is all, else one line for each entry."""
    lines = extra.split("\n") if extra else []
    if len(lines) == 1 and not children:
        return f"{name}({lines[0]})"
    lines += children
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


__all__ = ["Module"]
