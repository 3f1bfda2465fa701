"""Calling a module: `forward`, the hooks around it, and the module's path in its errors.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.Module.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core.hooks import HookDict, RemovableHandle
from torchlab.nn._backward_hooks import BackwardHooks, watch_last_node


class GlobalHooks:
    """The hooks that hold for every module of the process."""

    def __init__(self) -> None:
        self.forward_pre, self.forward = HookDict(), HookDict()
        self.backward_pre, self.backward = HookDict(), HookDict()
        self.forward_with_kwargs, self.forward_always = HookDict(), HookDict()
        self.parameter, self.buffer, self.module = HookDict(), HookDict(), HookDict()

    def calls(self) -> bool:
        """Whether any of them concerns calls."""
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


GLOBAL = GlobalHooks()
_ACTIVE: list[Any] = []  # not empty while there may be global hooks: one truth test for each call


def add_hook(table: Any, hook: Any, *, flags: Any = (), prepend: bool = False) -> RemovableHandle:
    """Enter `hook`, and its id in the tables of `flags`, such as "wants keyword arguments"."""
    handle = RemovableHandle(table, extra_dict=flags)
    table[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        others = [k for k in table if k != handle.id]
        for k in others:
            table[k] = table.pop(k)
    return handle


def _global(table: Any, hook: Any, flags: Any = ()) -> RemovableHandle:
    if not _ACTIVE:
        _ACTIVE.append(GLOBAL)
    return add_hook(table, hook, flags=flags)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module."""
    return _global(GLOBAL.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module."""
    flags = [GLOBAL.forward_with_kwargs] if with_kwargs else []
    flags += [GLOBAL.forward_always] if always_call else []
    return _global(GLOBAL.forward, hook, flags)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return _global(GLOBAL.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return _global(GLOBAL.backward, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` for every parameter that is registered."""
    return add_hook(GLOBAL.parameter, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` for every buffer that is registered."""
    return add_hook(GLOBAL.buffer, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` for every submodule that is registered."""
    return add_hook(GLOBAL.module, hook)


class Calls:
    """The part of Module that is about being called."""

    forward: Callable[..., Any]
    _forward_hooks: HookDict
    _forward_hooks_with_kwargs: HookDict
    _forward_hooks_always_called: HookDict
    _forward_pre_hooks: HookDict
    _forward_pre_hooks_with_kwargs: HookDict
    _backward_hooks: HookDict
    _backward_pre_hooks: HookDict
    _is_full_backward_hook: bool | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if (
                self._forward_hooks or self._forward_pre_hooks or self._backward_hooks
                or self._backward_pre_hooks or _ACTIVE
            ):  # fmt: skip
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            note_module(error, self)
            raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Calls.__call__(self, *args, **kwargs)

    def _call_with_hooks(self, args: Any, kwargs: Any) -> Any:
        if _ACTIVE and not GLOBAL.calls():
            _ACTIVE.clear()
        called: set[int] = set()
        result = None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            backward = self._backward_hook_runner()
            if backward is not None:
                args = backward.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            for key, hook, with_kwargs in self._all_forward_hooks():
                called.add(key)
                r = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                if r is not None:
                    result = r
            if backward is not None:
                result = backward.watch_outputs(result)
            if self._is_full_backward_hook is False and self._backward_hooks:
                watch_last_node(self, list(self._backward_hooks.values()), args, result)
            return result
        except Exception:
            self._run_always_called(args, kwargs, result, called)
            raise

    def _run_pre_hooks(self, args: Any, kwargs: Any) -> Any:
        for key, hook in (*GLOBAL.forward_pre.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                r = hook(self, args, kwargs)
                if r is None:
                    continue
                if not (isinstance(r, tuple) and len(r) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {r}."
                    )
                args, kwargs = r
            else:
                r = hook(self, args)
                if r is not None:
                    args = r if isinstance(r, tuple) else (r,)
        return args, kwargs

    def _all_forward_hooks(self) -> list[tuple[int, Any, bool]]:
        found = [(k, h, k in GLOBAL.forward_with_kwargs) for k, h in GLOBAL.forward.items()]
        return found + [
            (k, h, k in self._forward_hooks_with_kwargs) for k, h in self._forward_hooks.items()
        ]

    def _run_always_called(self, args: Any, kwargs: Any, result: Any, called: set[int]) -> None:
        """After an error: those hooks that asked for it and have not run. Their errors are not the
        one to report."""
        always = {**GLOBAL.forward_always, **self._forward_hooks_always_called}
        for key, hook, with_kwargs in self._all_forward_hooks():
            if key not in always or key in called:
                continue
            try:
                r = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                if r is not None:
                    result = r
            except Exception as second:
                warn_always_called(self, second)

    def _backward_hook_runner(self) -> BackwardHooks | None:
        pre = [*GLOBAL.backward_pre.values(), *self._backward_pre_hooks.values()]
        own = () if self._is_full_backward_hook is False else self._backward_hooks.values()
        full = [*GLOBAL.backward.values(), *own]
        return BackwardHooks(self, full, pre) if pre or full else None

    # ---- registering -----------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward; what it returns replaces the arguments.

        with_kwargs: `hook(module, args, kwargs)`, which may return (args, kwargs).
        """
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return add_hook(self._forward_pre_hooks, hook, flags=flags, prepend=prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:  # fmt: skip
        """Call `hook(module, args, output)` after each forward; what it returns replaces the
        output.

        with_kwargs: `hook(module, args, kwargs, output)`; always_call: also when forward raises.
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        flags += [self._forward_hooks_always_called] if always_call else []
        return add_hook(self._forward_hooks, hook, flags=flags, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward; it may return a new
        one."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are
        known; what
        it returns replaces grad_input."""
        self._kind_of_backward_hooks(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` at the last step that forward recorded: the
        old kind, which sees that step's gradients and not the module's where they differ.
        Deprecated: `register_full_backward_hook`."""
        self._kind_of_backward_hooks(full=False)
        return add_hook(self._backward_hooks, hook)

    def _kind_of_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single"
                " Module. Please use only one of them."
            )
        self._is_full_backward_hook = full


# ---- errors -------------------------------------------------------------------------------------


def note_module(error: BaseException, module: Any) -> None:
    """Say in the error's note which module's forward raised it: by its path below `module`, the
    outermost module that the error has reached so far."""
    state = error.__dict__.get("_torchlab_module")
    if state is None:
        at = len(getattr(error, "__notes__", ()))
        error.add_note(_where(module, ""))
        # The identity, not the module: errors are pickled, and keep nothing alive but their frames.
        error.__dict__["_torchlab_module"] = (id(module), at)
        return
    inner, at = state
    notes: list[str] = getattr(error, "__notes__", [])
    if at >= len(notes):
        return
    for path, m in module.named_modules():
        if path and id(m) == inner:
            notes[at] = _where(m, path)
            return


def _where(module: Any, path: str) -> str:
    text = type(module).__name__
    try:
        extra = module.extra_repr()
    except Exception:  # a user's method; its error is not the one to report
        extra = ""
    if extra or not module._modules:
        text = f"{text}({extra})"
    return f"in module {path} ({text})" if path else f"in module {text}"


def warn_always_called(module: Any, error: Exception) -> None:
    warnings.warn(
        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
        "another error was "
        f"raised in forward: {error}",
        stacklevel=4,
    )
