"""Selective checkpointing: the results of chosen operators are kept, the rest runs again.

Two dispatch modes share a store. In the first run one keeps, for every call of an operator, its
results or the mark that it is to run again; in the second run the other hands them out in order.

Source: https://docs.pytorch.org/docs/2.13/checkpoint.html
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import arrivals
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.pytree import tree_map
from torchlab._core.tape import storage_of
from torchlab._core.tensor import Tensor
from torchlab.utils._python_dispatch import TorchDispatchMode

_ADVICE = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on"
    " global state that changed between forward and backward."
)
_AGAIN = object()  # in the store: the call runs again
_USED = object()  # in the store: handed out


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results.

    SAVE: they are kept, and backward does not run the operator again. RECOMPUTE: they are not, and
    it does. CPU_OFFLOAD: a compiler may keep them in host memory; without one they are computed
    again. A compiler may decide otherwise on PREFER, never on MUST.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy function is told besides the call.

    op_output: what the operator has returned. is_recompute: always False, since the policy is asked
    in the first run only.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


SAC_IGNORED_OPS: set[OpOverload] = {arrivals.named("detach.default")}
"""Operators that no policy is asked about: they give another view of the same values. (PyTorch's
operators that ask for sizes and strides are no operators in torchlab.)"""


class _Kept:
    """A tensor in the store, and how often its memory had been written to."""

    __slots__ = ("value", "version")

    def __init__(self, t: Any) -> None:
        self.value = t.detach() if isinstance(t, Tensor) else t
        self.version = storage_of(t).version if isinstance(t, Tensor) else 0

    def get(self, allow_mutation: bool) -> Any:
        t = self.value
        if isinstance(t, Tensor):
            if not allow_mutation and storage_of(t).version != self.version:
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated"
                )
            t = t.detach()  # type: ignore[attr-defined]
            t._v = None  # for the tape it is the operator's result, no view made without it
        return t


class _Caching(TorchDispatchMode):
    """The first run."""

    def __init__(self, policy: Callable[..., Any], store: dict[Any, list[Any]]) -> None:
        super().__init__()
        self.policy = policy
        self.store = store

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return out
        told = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        policy = self.policy(told, func, *args, **kwargs)
        save = policy is True or policy in (
            CheckpointPolicy.MUST_SAVE,
            CheckpointPolicy.PREFER_SAVE,
        )
        self.store.setdefault(func, []).append(tree_map(_Kept, out) if save else _AGAIN)
        return out


class _Cached(TorchDispatchMode):
    """The second run."""

    def __init__(self, store: dict[Any, list[Any]], allow_mutation: bool) -> None:
        super().__init__()
        self.store = store
        self.allow_mutation = allow_mutation
        self.calls: dict[Any, int] = {}

    def __enter__(self) -> _Cached:
        self.calls = {}
        super().__enter__()
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        kept = self.store.get(func)
        if kept is None:
            raise RuntimeError(
                f"{func} encountered during backward but not found in storage. {_ADVICE}"
            )
        n = self.calls.get(func, 0)
        if n >= len(kept):
            raise RuntimeError(
                f"{func} invocation index {n} encountered during backward but not found in"
                f" storage. {_ADVICE}"
            )
        self.calls[func] = n + 1
        found = kept[n]
        if found is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any"
                " region computed under selective activation checkpoint."
            )
        if found is _AGAIN:
            return func(*args, **kwargs)
        kept[n] = _USED
        return tree_map(lambda k: k.get(self.allow_mutation), found)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The two contexts that `checkpoint(..., context_fn=...)` wants.

    policy_fn_or_list: a list of operators (`torch.ops.aten.mm.default`) whose results are kept, or
    `policy(ctx, op, *args, **kwargs)`, which returns a CheckpointPolicy (or whether to keep them).
    allow_cache_entry_mutation: do not mind if a kept tensor was written to.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                raise ValueError(_no_overload(op))
        chosen = list(policy_fn_or_list)

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    store: dict[Any, list[Any]] = {}
    return _Caching(policy, store), _Cached(store, allow_cache_entry_mutation)


def _no_overload(op: Any) -> str:
    text = f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
    if hasattr(op, "overloads"):  # a packet
        text += (
            "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have"
            " `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
        )
    return text


__all__ = [
    "SAC_IGNORED_OPS", "CheckpointPolicy", "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]  # fmt: skip
