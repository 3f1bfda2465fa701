"""`__torch_dispatch__`: modes and tensor classes that take over what is left of a call below
autograd and autocast.

Note [Below autograd]
~~~~~~~~~~~~~~~~~~~~~
PyTorch's dispatcher runs composites, then autocast, then autograd, then the Python handlers, then
kernels. Here a call comes to `call` when a mode is on or an argument's class has a handler. The
handler runs with the tape off; then the tape's part of the operator, a generated function of its
own (`generate.record`), puts the node on whatever the handler returned. A handler that calls
`func(*args)` comes back to the slow path, where the next mode outwards is found, and at last the
kernel. Hot paths ask nothing: modes are in `SLOW`, classes are no plain tensors.

Saved tensors of such a call are kept as objects (`Kept`), since a wrapper is more than its memory;
results that the node saves are kept detached, as PyTorch keeps them, and handlers see that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchlab._core.dispatch import arrivals, levels, modes, registry
from torchlab._core.dispatch.generate.record import record_call
from torchlab._core.dispatch.generate.source import NAMESPACE
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.dispatch.viewing import unrecorded, view_meta
from torchlab._core.refusals import MULTI_OUTPUT, modified
from torchlab._core.tape import NOGRAD, TLS, Out, ViewMeta, keeper, mark_view, save, storage_of
from torchlab._core.tensor import Tensor

# (overload, class of a mode or of tensors) → what replaces its handler for this operator
RULES: dict[tuple[OpOverload, type], Any] = {}


def dispatching(x: Any) -> bool:
    """Whether the class of a tensor has a `__torch_dispatch__` that is in force."""
    handler = getattr(type(x), "__torch_dispatch__", None)
    return handler is not None and handler is not disabled and isinstance(x, Tensor)


def disabled(*args: Any, **kwargs: Any) -> Any:
    """A class with this as its `__torch_dispatch__` is dispatched as a plain tensor."""
    return NotImplemented


def handlers_in(args: Any) -> list[Any]:
    """The arguments, one of each class, whose classes have a `__torch_dispatch__`; subclasses
    before their bases."""
    found: list[Any] = []
    for x in args:
        for y in x if type(x) in (list, tuple) else (x,):
            if dispatching(y) and all(type(y) is not type(z) for z in found):
                at = next(
                    (i for i, z in enumerate(found) if issubclass(type(y), type(z))), len(found)
                )
                found.insert(at, y)
    return found


def call(op: Any, args: tuple[Any, ...]) -> Any:
    """Run a declared operator: the handlers below, the tape above."""
    args = tuple(
        (x,) * a.type.size if type(x) is int and a.type.list and a.type.size else x
        for a, x in zip(op.schema.arguments, args, strict=True)
    )
    above = op._cache.get("above")
    if above is not None:  # an operator of the user's: its definition does the tape's part
        return above(args, lambda given: below(*arrivals.arrival(op, given)[:3]))
    inner = levels.innermost(args)
    if inner is not None:  # Note [Levels]: what it wraps has tapes of its own
        result = levels.hand_over(inner, "run", op, args)
    else:
        overload, told, named, back = arrivals.arrival(op, args)
        result = back(below(overload, told, named))
    returns = op.schema.returns
    if op.family == "view" and op.name != "detach":  # detached: no view for the tape
        _link_views(args[0], result)
    elif len(returns) > 1 and type(result) in (list, tuple):
        result = NAMESPACE["return_type_of"](op)(*result)
    if op.vjp and (not NOGRAD or TLS.grad) and _tensors_only(result):
        recorded(op)(*args, result)
    return result


def _tensors_only(result: Any) -> bool:
    if isinstance(result, (list, tuple)):
        return all(isinstance(r, Tensor) for r in result)
    return isinstance(result, Tensor)


def recorded(op: Any) -> Any:
    """The generated function that puts the node of `op` on the tape."""
    found = op._cache.get("record")
    if found is None:
        found = op._cache["record"] = record_call(op)
    return found


def below(overload: OpOverload, args: Any, kwargs: Any) -> Any:
    """Ask the handlers with the tape off."""
    inner = levels.innermost((*args, *kwargs.values()))
    if inner is not None:
        return levels.hand_over(inner, "run_overload", overload, args, kwargs)
    was = TLS.grad
    TLS.handling.append(was)
    if was:
        TLS.grad = False
        NOGRAD.append(1)
    try:
        return dispatch(overload, args, kwargs)
    finally:
        TLS.handling.pop()
        if was:
            TLS.grad = True
            NOGRAD.pop()


@contextlib.contextmanager
def reentrant() -> Iterator[None]:
    """Within a handler: the tape is as it was above autograd. RuntimeError anywhere else."""
    if not TLS.handling:
        raise RuntimeError(
            "Accessing torch dispatch state outside of '__torch_dispatch__' is not allowed."
        )
    on = TLS.handling[-1] and not TLS.grad
    if on:
        TLS.grad = True
        NOGRAD.pop()
    try:
        yield
    finally:
        if on:
            TLS.grad = False
            NOGRAD.append(1)


def dispatch(overload: OpOverload, args: Any, kwargs: Any) -> Any:
    """Ask the innermost mode, then the classes of the arguments; else compute."""
    every = (*args, *kwargs.values())
    found = handlers_in(every)
    types = tuple(type(x) for x in found)
    stack = TLS.dispatch_modes
    if stack:
        mode = stack.pop()
        try:
            rule = RULES.get((overload, type(mode))) if RULES else None
            if rule is not None:
                result = rule(mode, overload, types, args, kwargs)
            else:
                result = mode.__torch_dispatch__(overload, types, args, kwargs)
        finally:
            stack.append(mode)
        if result is not NotImplemented:
            return result
    for x in found:
        rule = RULES.get((overload, type(x))) if RULES else None
        if rule is not None:
            result = rule(type(x), overload, types, args, kwargs)
        else:
            result = type(x).__torch_dispatch__(overload, types, args, kwargs)
        if result is not NotImplemented:
            return result
    if stack or found:
        raise TypeError(
            f"Multiple dispatch failed for '{overload}'; all __torch_dispatch__ handlers returned"
            f" NotImplemented: {[type(x).__name__ for x in (*stack[-1:], *found)]}. Return a tensor"
            " from one of them, for example func(*args, **kwargs)."
        )
    return overload.run(args, kwargs)


def _link_views(parent: Tensor, result: Any) -> None:
    """Let views that a handler made be views for the tape, too."""
    many = isinstance(result, (list, tuple))
    if not isinstance(parent, Tensor):
        return
    s = storage_of(parent)
    v = parent._v if parent._v is not None else parent
    for r in result if many else (result,):
        if not isinstance(r, Tensor) or r is parent:
            continue
        if r._s is not s and not dispatching(r):
            continue
        r._s = s
        if many:
            base = v[0] if type(v) is ViewMeta else v
            recording = not NOGRAD or TLS.grad
            r._v = (base, MULTI_OUTPUT if recording else unrecorded(), s.version, None)
        else:
            r._v = view_meta(v, s, r)
        mark_view(s)


# ---- what the tape keeps -----------------------------------------------------------------------


class Kept:
    """A saved tensor as an object. `nr` is the number of the output it is, None for an input."""

    __slots__ = ("value", "storage", "version", "nr")

    def __init__(self, value: Tensor, source: Tensor, nr: int | None) -> None:
        self.value = value
        self.storage = storage_of(source)
        self.version = self.storage.version
        self.nr = nr

    def open(self, node: Any) -> Tensor:
        """The tensor again, after the check that nobody has written to it."""
        t = self.value
        if self.storage.version != self.version:
            raise RuntimeError(modified(node, t._a, t._k, self.storage, self.version))
        if self.nr is None:
            return t
        t = detached(t)
        if t._k.differentiable:
            t._e = Out(node, self.nr) if node._outs is not None else node
        return t


keeper.append(Kept)


def detached(t: Tensor) -> Tensor:
    """`t.detach()`, seen by handlers."""
    if t._level:  # Note [Levels]: it goes on in tapes further out
        return t.again("alias")  # type: ignore[no-any-return]
    if TLS.dispatch_modes or dispatching(t):
        return below(arrivals.named("detach.default"), (t,), {})
    return registry.OPS["detach"]["default"].core(t)


def keep(t: Tensor) -> Any:
    """What a node keeps of an argument."""
    if dispatching(t) and not TLS.saved_hooks:
        storage_of(t).saved = storage_of(t).version
        return Kept(t, t, None)
    return save(t)


def keep_output(node: Any, t: Tensor, nr: int) -> Any:
    """What a node keeps of its own result."""
    if TLS.saved_hooks:
        return NAMESPACE["save_output"](node, t, nr)
    if not t._k.differentiable or (node.used is not None and nr not in node.used):
        kept = Kept(t, t, None)  # a leaf: kept as it is
    else:
        kept = Kept(detached(t), t, nr)
    kept.storage.saved = kept.version
    return kept


# ---- writes ------------------------------------------------------------------------------------


def write(op: Any, args: tuple[Any, ...]) -> Any:
    """The in-place form of an operator, with the tape's checks and its new history around."""
    form = op._cache.get("told_inplace")
    if form is None:
        form = op._cache["told_inplace"] = NAMESPACE["inplace_told"](op)
    return form(*args)


def write_told(op: Any, args: tuple[Any, ...]) -> None:
    """The write itself: handlers are asked."""
    inner = levels.innermost(args)
    if inner is not None:
        levels.hand_over(inner, "run_inplace", op, args)
        NAMESPACE["wrote"](args[0])
        return
    overload, told, named, _ = arrivals.arrival(op, args, "inplace")
    t = args[0]
    s = storage_of(t)
    before = s.version
    below(overload, told, named)
    if dispatching(t) and s.version == before:
        NAMESPACE["wrote"](t)


def write_out(op: Any, args: tuple[Any, ...], out: Any) -> Any:
    """The out= form of an operator."""
    overload, told, named, _ = arrivals.arrival(op, args, "out")
    names = [a.name for a in overload.parsed.out_arguments]
    outs = out if isinstance(out, (tuple, list)) else (out,)
    return below(overload, told, {**named, **dict(zip(names, outs, strict=True))})


def on(mode: Any) -> None:
    """Put a mode on the thread's stack."""
    TLS.dispatch_modes.append(mode)
    modes.SLOW.append(mode)


def off(mode: Any) -> None:
    """Take the innermost mode from the thread's stack."""
    modes.SLOW.remove(mode)
    TLS.dispatch_modes.remove(mode)


modes.python_key.append(call)
modes.python_write.append(write)
modes.python_out.append(write_out)
modes.python_ask.append(below)
modes.dispatch_handlers.append(handlers_in)

__all__ = [
    "Kept", "below", "call", "detached", "disabled", "dispatch", "dispatching", "handlers_in",
    "keep", "keep_output", "off", "on", "recorded", "reentrant", "write", "write_out", "write_told",
]  # fmt: skip
