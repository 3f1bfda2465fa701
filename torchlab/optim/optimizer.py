"""The base of all optimizers: parameter groups, state, saving and loading, hooks.

Source: https://docs.pytorch.org/docs/2.13/optim.html#torch.optim.Optimizer
"""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from torchlab._core import blocks
from torchlab._core.dispatch.registry import aten
from torchlab._core.hooks import HookDict
from torchlab._core.tensor import Tensor
from torchlab.nn._calls import RemovableHandle, add_hook
from torchlab.nn._conversion import clear_grad
from torchlab.nn._typename import typename
from torchlab.optim import _writers
from torchlab.optim._writers import (  # noqa: F401  other libraries' optimizers import them here
    Args,
    DeviceDict,
    DeviceDtypeDict,
    Kwargs,
    ParamsT,
    StateDict,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _foreach_supported_types,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)


class _Required:
    """Stands in `defaults` for an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
_before_step, _after_step = HookDict(), HookDict()  # hooks of every optimizer of the process


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return add_hook(_before_step, hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return add_hook(_after_step, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` with the hooks around it, and as one block to profilers that look on."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True  # learning-rate schedulers ask for it
        before = self.__dict__.get("_optimizer_step_pre_hooks")
        if before is None:  # a wrapper that leaves `__init__` out, in which PyTorch puts the hooks
            return step(self, *args, **kwargs)
        if not (
            before
            or self._optimizer_step_post_hooks
            or _before_step
            or _after_step
            or blocks.LISTENERS
        ):
            return step(self, *args, **kwargs)
        if _overridden(type(self), hooked):
            return step(self, *args, **kwargs)  # `super().step()`: a part of the subclass's step
        if not blocks.LISTENERS:
            return _hooked_step(step, self, args, kwargs)
        with blocks.block(f"Optimizer.step#{type(self).__name__}.step"):
            return _hooked_step(step, self, args, kwargs)

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


def _overridden(cls: type, step: Any) -> bool:
    """Whether a base class's `step` is meant, which another has taken the place of."""
    return cls.step is not step and any(  # type: ignore[attr-defined]
        base.__dict__.get("step") is step for base in cls.__mro__
    )


def _hooked_step(step: Callable[..., Any], self: Any, args: Any, kwargs: Any) -> Any:
    for hook in (*_before_step.values(), *self._optimizer_step_pre_hooks.values()):
        r = hook(self, args, kwargs)
        if r is not None:
            if not (isinstance(r, tuple) and len(r) == 2):
                raise RuntimeError(
                    f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {r}."
                )
            args, kwargs = r
    result = step(self, *args, **kwargs)
    for hook in (*self._optimizer_step_post_hooks.values(), *_after_step.values()):
        hook(self, args, kwargs)
    return result


class Optimizer:
    """params: tensors, (name, tensor) pairs, or dicts with "params" and options of their own.
    defaults: the options of groups that do not say otherwise. Subclasses define `step`.
    """

    OptimizerPreHook = Callable[..., Any]
    OptimizerPostHook = Callable[..., None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.step  # of the class, or of one beside it that is no Optimizer
        if step is not Optimizer.step and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, HookDict())
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                "dicts, but got " + typename(params)
            )
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    _group_tensors_by_device_and_dtype = staticmethod(_writers._group_tensors_by_device_and_dtype)

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """`func`, a `step`, with the hooks around it. Subclasses' own `step` has them already."""
        return func if getattr(func, "hooked", False) else _with_hooks(func)

    # ---- groups ----------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with "params" and options.

        Raises TypeError or ValueError for what is no leaf tensor, for a parameter that another
        group
        has, and for a missing option; then nothing was added.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, Tensor):
            entries: list[Any] = [given]
        elif isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        else:
            entries = list(given)
        params, names = _split_names(entries)
        self._check_params(params)
        options = {k: v for k, v in param_group.items() if k != "params"}
        if names:
            options["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in options:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            options.setdefault(name, default)
        for group in self.param_groups:
            if ("param_names" in group) != bool(names):
                how = "with" if names else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {how} names to the optimizer"
                )
        taken = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in taken for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        param_group["params"] = params
        param_group.update(options)
        self.param_groups.append(param_group)

    def _check_params(self, params: list[Any]) -> None:
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + typename(p)
                )
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        if blocks.LISTENERS:
            with blocks.block(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
                self._forget_gradients(set_to_none)
        else:
            self._forget_gradients(set_to_none)

    def _forget_gradients(self, set_to_none: bool) -> None:
        if set_to_none:
            for group in self.param_groups:
                for p in group["params"]:
                    p._g = None
            return
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    clear_grad(p, False)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients. closure: computes the loss anew and returns
        it."""
        raise NotImplementedError(f"{type(self).__name__} has no step(): an optimizer defines one")

    # ---- text and pickles ------------------------------------------------------------------------

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            lines.append("")
        lines[-1:] = [")"]
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, HookDict())

    # ---- saving and loading ----------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": number of a parameter → its state, "param_groups": options and numbers}.

        Tensors are those of the optimizer, not copies.
        """
        for before in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            before(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for after in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            r = after(self, result)
            result = result if r is None else r
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options. State of floating-point parameters gets their dtype and
        device.

        Raises ValueError if groups or their sizes differ; then nothing has changed.
        """
        state_dict = state_dict.copy()
        for before in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            r = before(self, state_dict)
            state_dict = state_dict if r is None else r
        mine, theirs = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(mine) != len(theirs):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(mine, theirs, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        by_number = dict(
            zip(
                chain.from_iterable(g["params"] for g in theirs),
                chain.from_iterable(g["params"] for g in mine),
                strict=True,
            )
        )
        options = {number: g for g in theirs for number in g["params"]}
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                state[by_number[key]] = _placed(by_number[key], value, options[key])
            else:
                state[key] = value
        groups = []
        for old, new in zip(mine, theirs, strict=True):
            if "param_names" in old and "param_names" not in new:
                new["param_names"] = old["param_names"]
            new["params"] = old["params"]
            groups.append(new)
        self.__setstate__({"state": state, "param_groups": groups})
        for after in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            after(self)

    # ---- hooks -----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new (args,
        kwargs)."""
        return add_hook(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(
        self, hook: Callable[..., None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another dict."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another dict."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)  # type: ignore[attr-defined]


def _split_names(entries: list[Any]) -> tuple[list[Any], list[str]]:
    """Parameters, and their names if they came as (name, parameter) pairs."""
    named = [e for e in entries if isinstance(e, tuple)]
    if not named:
        return entries, []
    if len(named) != len(entries):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    return [p for _, p in named], [name for name, _ in named]


def _placed(p: Tensor, value: Any, options: dict[str, Any], key: Any = None) -> Any:
    """A loaded value where the parameter's own state would be, containers included."""
    if isinstance(value, Tensor):
        if key == "step":
            if options.get("capturable") or options.get("fused"):
                return value.to(dtype=aten.scalar_tensor(0.0).dtype, device=p.device)  # type: ignore[attr-defined]
            return value
        if p.is_floating_point():
            return value.to(dtype=p.dtype, device=p.device)  # type: ignore[attr-defined]
        return value.to(device=p.device)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {k: _placed(p, v, options, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_placed(p, v, options) for v in value)  # type: ignore[call-arg]
    return value


__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]
