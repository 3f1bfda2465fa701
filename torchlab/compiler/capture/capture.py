"""`capture`: run a function once on fake tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlab._core.dtype import get_default_dtype
from torchlab._core.generator import default_generator
from torchlab._core.tape import NOGRAD, TLS
from torchlab._core.tensor import Tensor
from torchlab.compiler.capture.breaks import Break
from torchlab.compiler.capture.fake import FakeMode, is_fake
from torchlab.compiler.capture.scan import scan
from torchlab.compiler.capture.segment import SCALARS, Captured, Guards, arguments_key

Recipe = Callable[[Sequence[Tensor], Sequence[Tensor]], Any]


class State(threading.local):
    """Per thread: how many captures are running, and how many exports."""

    capturing = 0
    exporting = 0


STATE = State()


def environment(onlookers: Sequence[Any] = ()) -> Any:
    """The thread's settings that results depend on; None where nothing is compiled: under
    modes (but for `onlookers`), inference mode, saved-tensor hooks or anomaly detection."""
    t = TLS
    modes = t.dispatch_modes
    if t.inference or t.function_modes or t.saved_hooks or t.anomaly:
        return None
    if modes and list(modes) != list(onlookers):
        return None
    casts = None if t.autocast is None else t.autocast.key
    return (not NOGRAD or t.grad, get_default_dtype(), casts)


def capture(
    fn: Callable[..., Any], root: Any, args: Any, kwargs: Any, guards: Guards
) -> tuple[Captured, Any]:
    """The graph of `fn(*args, **kwargs)`, and the recipe that rebuilds the result; `guards` are
    filled.

    root: the function or module whose code is read. Raises Break where that cannot be done;
        then nothing
    the user can see has changed, and `guards` tell when it may be worth another try.
    """
    tensors: list[Tensor] = []
    guards.key, guards.environment = arguments_key(args, kwargs, tensors), environment()
    scan(root, guards, (*args, *kwargs.values()))
    mode = FakeMode()
    fakes = iter([mode.input(t) for t in tensors])
    dice = default_generator.get_state()
    fake_args = [_replace(x, fakes) for x in args]
    fake_kwargs = {k: _replace(v, fakes) for k, v in kwargs.items()}
    given = len(tensors)
    failure: Break | None = None
    STATE.capturing += 1
    try:
        with mode:
            result = fn(*fake_args, **fake_kwargs)
    except Break as b:
        failure = b
    except Exception as error:
        failure = _explain(error, mode)
        failure.__cause__ = error
    finally:
        STATE.capturing -= 1
        after = guards.check()
        guards.restore()
        rolled = not np.array_equal(default_generator.get_state(), dice)
        if rolled:
            default_generator.set_state(dice)
    failure = failure or mode.broken
    if rolled:  # dropout, for one, draws before it does what capture sees
        where = failure.source if failure is not None else ""
        raise Break("the function draws random numbers; they are not part of a graph", where)
    if failure is not None:
        raise failure
    if after is not None:
        raise Break(f"the function changes what it reads: {after[0]}", "")
    outputs: list[Tensor] = []
    recipe = _recipe(result, mode, outputs)
    mode.graph.output([mode.node_of(t) for t in outputs])
    for t in mode.inputs[given:]:
        guards.tensors.append(
            (
                t,
                (t._k, t._a.shape, t._a.strides, t.requires_grad),
                "a tensor that the function reads",
            )
        )
    name = getattr(root, "__name__", type(root).__name__)
    captured = Captured(mode.graph, list(mode.inputs), given, list(mode.fakes), outputs, mode, name)
    return captured, recipe


def _replace(x: Any, fakes: Any) -> Any:
    """The argument with fakes for tensors, in the order in which `arguments_key` met them."""
    if isinstance(x, Tensor):
        return next(fakes)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_replace(y, fakes) for y in x])
    if type(x) in (tuple, list):
        return type(x)([_replace(y, fakes) for y in x])
    if type(x) is dict:
        return {k: _replace(v, fakes) for k, v in x.items()}
    return x


def _explain(error: Exception, mode: FakeMode) -> Break:
    if mode.broken is not None:
        return mode.broken
    tb = error.__traceback__
    line = ""
    while tb is not None:
        name = tb.tb_frame.f_globals.get("__name__", "")
        if not name.startswith("torchlab"):
            line = f"{tb.tb_frame.f_code.co_filename}:{tb.tb_lineno}"
        tb = tb.tb_next
    text = str(error)
    if "MetaArray" in text or "meta" in text:
        return Break(
            f"a tensor's values are needed by Python, or an operator has no meta rule ({text})",
            line,
        )
    return Break(f"the capture's run raised {type(error).__name__}: {text}", line)


def _given(i: int) -> Recipe:
    return lambda out, given: given[i]


def _computed(n: int) -> Recipe:
    return lambda out, given: out[n]


def _recipe(result: Any, mode: FakeMode, outputs: list[Tensor]) -> Recipe:
    """A function (graph outputs, graph inputs) → the result; fills `outputs` with the fakes to
    compute.
    """
    if isinstance(result, Tensor):
        if not is_fake(result):
            raise Break("the function returns a tensor that it did not compute from its arguments")
        for i, f in enumerate(mode.fakes):
            if result is f:
                return _given(i)
        if id(result._a) not in mode.values:
            raise Break("the function returns a tensor from another capture")
        for f in mode.fakes:
            if f._a is result._a or (f._s is not None and f._s is result._s):
                raise Break("the function returns a view of an input")
        for n, t in enumerate(outputs):
            if t is result:
                return _computed(n)
            if t._s is not None and t._s is result._s:
                raise Break("two results share memory")
        outputs.append(result)
        return _computed(len(outputs) - 1)
    if isinstance(result, SCALARS):
        return lambda out, given: result
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        parts = [_recipe(x, mode, outputs) for x in result]
        return lambda out, given: type(result)(*[p(out, given) for p in parts])
    if isinstance(result, (tuple, list)):
        kind = type(result)
        parts = [_recipe(x, mode, outputs) for x in result]
        return lambda out, given: kind([p(out, given) for p in parts])
    if type(result) is dict:
        keyed = {k: _recipe(v, mode, outputs) for k, v in result.items()}
        return lambda out, given: {k: p(out, given) for k, p in keyed.items()}
    raise Break(f"the function returns a {type(result).__name__}")
