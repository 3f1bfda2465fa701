"""`state_dict` and `load_state_dict`.

Loading has two halves: every module first checks what it is given and notes down what is to be
written; only when nothing was wrong is anything written. So a load that raises has changed nothing.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.Module.html
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Parameter, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn._calls import RemovableHandle, add_hook

_EXTRA = "_extra_state"


class IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: the keys that did not find a partner."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_{super().__repr__()}"  # PyTorch's class is private

    __str__ = __repr__


class _Loading(threading.local):
    """The writes that this thread's `load_state_dict` has noted down; None outside of one."""

    plan: list[Callable[[], None]] | None = None
    targets: list[Any]


_loading = _Loading()


def _write(action: Callable[[], None], target: Any = None) -> None:
    if _loading.plan is None:
        action()
    else:
        _loading.plan.append(action)
        if target is not None:
            _loading.targets.append(target)


def _has_extra(owner: Any, name: str) -> bool:
    return getattr(type(owner), name) is not getattr(State, name)


def _persistent(owner: Any) -> dict[str, Any]:
    """Parameters and persistent buffers by name, None included."""
    found = dict(owner._parameters)
    found.update(
        (k, v) for k, v in owner._buffers.items() if k not in owner._non_persistent_buffers_set
    )
    return found


def _put(owner: Any, name: str, target: Any, value: Any, assign: bool) -> None:
    if not assign:
        with no_grad():
            target.copy_(value)
        return
    if target._is_param:
        if not value._is_param:
            value = Parameter(value, target.requires_grad)  # type: ignore[call-arg]
        else:
            value.requires_grad_(target.requires_grad)
    setattr(owner, name, value)


class State:
    """The part of Module that saves and loads."""

    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: Any
    _state_dict_pre_hooks: Any
    _load_state_dict_pre_hooks: Any
    _load_state_dict_post_hooks: Any

    # ---- saving ----------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Override together with `set_extra_state` to save more than parameters and buffers."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: "
            "override it in your module."
        )

    def set_extra_state(self, state: Any) -> None:
        """Override to load what `get_extra_state` saved."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: "
            "override it in your module."
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in _persistent(self).items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else aten.detach(value)
        if _has_extra(self, "get_extra_state"):
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """An ordered dict of path → tensor (sharing memory) of parameters and persistent buffers.

        keep_vars: the tensors themselves, not detached. Its `_metadata` has each module's version.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=2,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given.get("destination", destination)
            prefix, keep_vars = given.get("prefix", prefix), given.get("keep_vars", keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    # ---- loading ---------------------------------------------------------------------------------

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Check and load this module's own entries, not its children's."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        own = _persistent(self)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            if target is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            self._load_one(name, target, key, state_dict[key], assign, error_msgs)
        key = prefix + _EXTRA
        if _has_extra(self, "set_extra_state"):
            if key in state_dict:
                extra = state_dict[key]
                _write(lambda: self.set_extra_state(extra))
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + _EXTRA:
                    name, *below = key[len(prefix) :].split(".", 1)
                    if name not in own and not (below and name in self._modules):
                        unexpected_keys.append(key)

    def _load_one(
        self, name: str, target: Any, key: str, value: Any, assign: bool, error_msgs: list[str]
    ) -> None:
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
            return
        if target.dim() == 0 and value.dim() == 1 and value.shape[0] == 1:
            value = value[0]  # scalars were once saved with one dimension
        if value.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                "checkpoint, the shape in "
                f"current model is {target.shape}."
            )
            return
        if value.is_meta and not target.is_meta and not assign:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{target.size()} and whose dimensions in the checkpoint are {value.size()}, "
                "an exception occurred : ('Cannot copy out of meta tensor; no data!',)."
            )
            return
        if target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in "
                "the state "
                "dictionary to their corresponding key in the module instead of copying them in "
                "place?)",
                stacklevel=6,
            )
        _write(lambda: _put(self, name, target, value, assign), target)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values from `state_dict` (assign: take its tensors themselves).

        Raises RuntimeError listing missing and unexpected keys (if strict) and shapes that differ;
        then nothing has changed. TypeError if it is no mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        entries: Any = OrderedDict(state_dict)
        if metadata is not None:
            entries._metadata = metadata
        walked: list[Any] = []
        outer = _loading.plan, getattr(_loading, "targets", [])
        _loading.plan, _loading.targets = [], []
        try:
            _walk(self, entries, "", metadata, assign, (missing, unexpected, errors), walked)
            plan, targets = _loading.plan, _loading.targets
        finally:
            _loading.plan, _loading.targets = outer
        hooks = [(m, h) for m in walked for h in m._load_state_dict_post_hooks.values()]
        keys = IncompatibleKeys(missing, unexpected)
        if errors or (strict and not hooks and (missing or unexpected)):
            _refuse(self, keys, errors, strict)
        before = [(t, aten.clone(aten.detach(t))) for t in targets] if hooks else []
        for action in plan:
            action()
        for module, hook in hooks:
            if hook(module, keys) is not None:
                raise RuntimeError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values; if "
                    "incompatible_keys need to be modified, it should be done inplace."
                )
        if strict and (missing or unexpected):
            with no_grad():
                for t, value in before:
                    t.copy_(value)
            _refuse(self, keys, errors, strict)
        return keys

    # ---- hooks -----------------------------------------------------------------------------------

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously "

                               "registered via register_state_dict_post_hook")  # fmt: skip
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the module was saved."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before this module is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        bound = _WithModule(hook, self) if with_module else hook
        return add_hook(self._load_state_dict_pre_hooks, bound)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before this module's entries are read."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after everything was loaded."""
        return add_hook(self._load_state_dict_post_hooks, hook)


class _WithModule:
    """A load hook that is given its module first."""

    def __init__(self, hook: Any, module: Any) -> None:
        self.hook = hook
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module, *args)


def _walk(
    module: Any,
    entries: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    found: Any,
    walked: list[Any],
) -> None:
    """Let `module` and all below check their entries; in `walked` children precede parents."""
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local = {**local, "assign_to_params_buffers": True}
    # Strictness is decided at the end; the lists are always filled.
    module._load_from_state_dict(entries, prefix, local, True, *found)
    for name, child in module._modules.items():
        if child is not None:
            below = prefix + name + "."
            mine = OrderedDict((k, v) for k, v in entries.items() if k.startswith(below))
            _walk(child, mine, below, metadata, assign, found, walked)
    walked.append(module)


def _refuse(module: Any, keys: IncompatibleKeys, errors: list[str], strict: bool) -> None:
    lines = list(errors)
    if strict:
        for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
            if names:
                listed = ", ".join(f'"{k}"' for k in names)
                lines.insert(0, f"{what} key(s) in state_dict: {listed}. ")
    text = "\n\t".join(lines)
    raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{text}")
