"""`torchlab.utils.checkpoint`: keep fewer activations, and compute the others again in backward.

    y = checkpoint(block, x, use_reentrant=False)

Source: https://docs.pytorch.org/docs/2.13/checkpoint.html
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from torchlab.autograd.grad_mode import is_grad_enabled
from torchlab.nn.modules.container import Sequential
from torchlab.utils.checkpoint._debug import Recorder
from torchlab.utils.checkpoint._reentrant import (
    CheckpointFunction,
    check_backward_validity,
    detach_variable,
)
from torchlab.utils.checkpoint._region import CheckpointError, GraphExecGroup, Region, metadata
from torchlab.utils.checkpoint._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from torchlab.utils.checkpoint._state import (
    DefaultDeviceType,
    Surroundings,
    get_device_states,
    set_device_states,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

for _class in (
    CheckpointError,
    CheckpointFunction,
    CheckpointPolicy,
    DefaultDeviceType,
    GraphExecGroup,
    SelectiveCheckpointContext,
):
    _class.__module__ = __name__

ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]
_COMPARED = {"default": metadata, "none": None}
_debug_for_all: bool | None = None
_early_stop_for_all: bool | None = None


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside, every checkpoint has debug mode on (True) or off (False); None: as each says."""
    global _debug_for_all
    before = _debug_for_all
    _debug_for_all = enabled
    try:
        yield
    finally:
        _debug_for_all = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether the second run stops once all that is needed is computed. It matters in forward
    only: a checkpoint remembers it for backward."""
    global _early_stop_for_all
    before = _early_stop_for_all
    _early_stop_for_all = enable
    try:
        yield
    finally:
        _early_stop_for_all = before


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, without keeping what it computes on the way: backward runs it
    again. The inputs stay in memory.

    use_reentrant: False: by saved-tensor hooks; any kind of backward works, and the second run
        stops early. True: by a custom Function; only `backward()` without `inputs` works, tensors
        in nested containers are no part of the graph, and the whole function runs again.
    preserve_rng_state: (keyword) whether the second run draws the same random numbers. True.
    context_fn: gives two contexts, for the first run and for the others.
    determinism_check: "default" compares shapes, dtypes and devices of both runs; "none".
    debug: whether a CheckpointError lists the operators of both runs.
    early_stop: whether the second run may stop early.

    The function has to do the same both times: CheckpointError, or wrong gradients, if it does not.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly."
            " Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an"
            " exception. use_reentrant=False is recommended, but if you need to preserve the"
            " current default behavior, you can pass use_reentrant=True. Refer to docs for more"
            " details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if _early_stop_for_all is not None:
        early_stop = _early_stop_for_all
    if determinism_check not in _COMPARED:
        raise ValueError(
            f"determinism_check should be one of {list(_COMPARED)}, but got {determinism_check}"
        )
    on_error: Any = None
    if debug if _debug_for_all is None else _debug_for_all:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        recorder = Recorder()
        context_fn, on_error = recorder.contexts, recorder.fail
    for_first, for_again = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    surroundings = Surroundings(preserve, args, kwargs)

    def run_again(inputs: tuple[Any, ...]) -> Any:
        with surroundings.restored(), for_again:
            return function(*inputs, **kwargs)

    region = Region(run_again, args, early_stop, _COMPARED[determinism_check], on_error)
    with region.first(), for_first:
        result = function(*args, **kwargs)
    region.completed = True
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a Sequential, or a list of functions, in `segments` checkpointed parts; the last part
    keeps what it computes, since backward begins there.

    preserve_rng_state: (keyword) as for `checkpoint`.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be"
            " passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not"
            " passed. use_reentrant=False is recommended, but if you need to preserve the current"
            " default behavior, you can pass use_reentrant=True. Refer to docs for more details on"
            " the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    size = len(steps) // segments

    def run(part: list[Any]) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for step in part:
                x = step(x)
            return x

        return forward

    starts = range(0, size * (segments - 1), size)
    for start in starts:
        input = checkpoint(
            run(steps[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return run(steps[size * (segments - 1) :])(input)
