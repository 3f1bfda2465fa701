"""Batched tensors: what `vmap` hides from the function that it runs is one of their dimensions.

Note [Batching]
~~~~~~~~~~~~~~~
An operator on batched tensors runs once on what they hold, by a rule that knows what the hidden
dimension means to it (the files of `batching`, by families); operators without a rule run once for
each element of the batch, and the results are stacked (`one_by_one`). Composites run their body,
on wrappers.

A write in place computes the result in the same way and copies it into what the wrapper holds; a
view of a wrapper holds a view, so writes reach everybody. What is not batched cannot take in what
is: RuntimeError.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.vmap.html
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from textwrap import indent
from typing import Any, NoReturn

from torchlab._core.dispatch import levels, modes, writes
from torchlab._core.dispatch.levels import LEVELS, Level, again, mapped, wrapper
from torchlab._core.dispatch.overload import bind
from torchlab._core.dispatch.registry import OPS, aten
from torchlab._core.lazy import lazy
from torchlab._core.tape import NOGRAD, TLS, edge_of
from torchlab._core.tensor import Tensor

Rule = Callable[[Any, tuple[Any, ...], int], Any]
RULES: dict[str, Rule] = {}  # "name.overload", or "name" for all overloads
MAKERS: dict[str, Callable[..., Any]] = {}  # overloads that no declaration stands for
WHOLE = frozenset(("argwhere",))  # composites that run for each element, not their body
_rules = lazy("torchlab._core.dispatch.batching")


class Batched(Level):
    """A wrapper that holds a tensor and the number of its hidden dimension; None for a constant,
    which is the same for all of the batch."""

    __slots__ = ()
    value: Tensor
    bdim: int | None

    @classmethod
    def run(cls, op: Any, args: tuple[Any, ...], level: int) -> Any:
        if not size_of(args, level):
            return mapped(
                lambda r: batched(r, None, level),
                again(op, [mapped(lambda x: held(x, level), a) for a in args]),
            )
        return rule_of(op)(op, args, level)

    @classmethod
    def run_inplace(cls, op: Any, args: tuple[Any, ...], level: int) -> None:
        target = args[0]
        if target._level != level or target.bdim is None:
            if size_of(args, level):
                _refuse_write(f"{op.name}_")
            again_inplace(op, [mapped(lambda x: held(x, level), a) for a in args])
            return
        if _recorded(args, level):  # what the tape saves must not be what is written
            args = (batched(aten.clone(target.value), target.bdim, level), *args[1:])
        result = cls.run(op, args, level)
        if result._a.shape != target._a.shape:
            raise RuntimeError(
                f"{op.name}_: output with shape {list(target._a.shape)} doesn't match the broadcast"
                f" shape {list(result._a.shape)}"
            )
        writes.check_cast(op, result._k.dtype, target._k.dtype)
        write(target, result, level)

    def each(self, fn: Callable[[Tensor], Tensor]) -> Any:
        r = batched(fn(self.value), self.bdim, self._level)
        r._v, r._e = self._v, self._e
        return r

    def take(self, other: Any) -> None:
        self.value, self.bdim = other.value, other.bdim

    @classmethod
    def whole(cls, op: Any) -> bool:
        return op.name in WHOLE

    @classmethod
    def lift(cls, x: Tensor, level: int) -> Any:
        return batched(x, None, level)

    @classmethod
    def run_overload(cls, overload: Any, args: Any, kwargs: Any, level: int) -> Any:
        op, form = overload.op, overload.form
        if op is None:
            _rules.load()
            maker = MAKERS.get(overload._opname)
            if maker is None:
                return _overload_by_one(overload, args, kwargs, level)
            return maker(overload, args, kwargs, level)
        full = bind(overload.parsed, args, kwargs)
        if form == "functional":
            return cls.run(op, full, level)
        if form == "inplace":
            cls.run_inplace(op, full, level)
            return args[0]
        n = len(op.schema.arguments)
        result = cls.run(op, full[:n], level)
        outs = full[n:]
        for out, r in zip(outs, result if len(outs) > 1 else (result,), strict=True):
            if out._level != level:  # type: ignore[attr-defined]
                _refuse_write(f"{op.name} with out=")
            writes.check_cast(op, r._k.dtype, out._k.dtype)
            write(out, r, level)
        return outs[0] if len(outs) == 1 else outs

    def __bool__(self) -> bool:
        if self.bdim is None:
            return bool(self.value)
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control"
            " flow: a branch, or a call of .item(), which cannot go differently for each element."
            " Use torch.where(condition, a, b)."
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        place = "" if self.bdim is None else f" bdim={self.bdim},"
        inner = indent(repr(self.value), "    ")
        return f"BatchedTensor(lvl={self._level},{place} value=\n{inner}\n)"

    __str__ = __repr__


def batched(value: Tensor, bdim: int | None, level: int) -> Batched:
    """A new batched tensor of `level`."""
    r = wrapper(Batched, value, level, bdim)
    r.value, r.bdim = value, bdim
    return r


def held(x: Any, level: int) -> Any:
    """What a batched tensor of this level holds; others as they are."""
    return x.value if x._level == level else x


def is_batched(x: Any, level: int) -> bool:
    """Whether it has a hidden dimension of this level."""
    return isinstance(x, Tensor) and x._level == level and x.bdim is not None  # type: ignore[attr-defined]


def front(x: Any, level: int) -> Tensor:
    """What a batched tensor holds, its hidden dimension first; others as they are."""
    if x._level != level or not x.bdim:
        return held(x, level)
    return aten.movedim(x.value, x.bdim, 0)


def whole(x: Any, n: int, level: int) -> Tensor:
    """The whole batch of `n` that a tensor stands for, the hidden dimension first."""
    if is_batched(x, level):
        return front(x, level)
    value = held(x, level)
    return aten.expand(value, (n, *value._a.shape))


def size_of(args: Any, level: int) -> int:
    """The size of the hidden dimension; 0 if none of them has one, which counts as constants."""
    for a in args:
        if isinstance(a, Tensor):
            if a._level == level and a.bdim is not None:  # type: ignore[attr-defined]
                return a.value._a.shape[a.bdim] or -1  # type: ignore[attr-defined]
        elif type(a) in (list, tuple):
            n = size_of(a, level)
            if n:
                return n
    return 0


def rule_of(op: Any) -> Rule:
    """The rule of a declaration."""
    found = op._cache.get("batching")
    if found is None:
        _rules.load()
        found = RULES.get(f"{op.name}.{op.overload}") or RULES.get(op.name)
        if found is None or op.namespace != "aten":
            elementwise = op.family in ("unary", "binary", "pointwise") and op.namespace == "aten"
            found = RULES["<elementwise>"] if elementwise else one_by_one
        op._cache["batching"] = found
    return found  # type: ignore[no-any-return]


def one_by_one(op: Any, args: tuple[Any, ...], level: int) -> Any:
    """The operator once for each element of the batch."""
    n = size_of(args, level)
    if n < 0:
        raise RuntimeError(
            f"vmap: {op.name} has no batching rule and cannot run over a batch of size 0"
        )

    def element(x: Any, i: int) -> Any:
        if x._level != level:
            return x
        return x.value if x.bdim is None else aten.select(x.value, x.bdim, i)

    rows = [again(op, [mapped(lambda x, i=i: element(x, i), a) for a in args]) for i in range(n)]
    first = rows[0]
    if isinstance(first, Tensor):
        return batched(aten.stack(rows), 0, level)
    if not isinstance(first, (list, tuple)):
        return first
    made = [
        batched(aten.stack(list(r)), 0, level) if isinstance(r[0], Tensor) else r[0]
        for r in zip(*rows, strict=True)
    ]
    return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)


def _overload_by_one(overload: Any, args: Any, kwargs: Any, level: int) -> Any:
    """The same for an overload that no declaration stands for, a functional one."""
    if overload.parsed.is_mutable:
        raise NotImplementedError(f"vmap: there is no batching rule for {overload}")
    n = size_of((*args, *kwargs.values()), level)

    def element(x: Any, i: int) -> Any:
        if x._level != level:
            return x
        return x.value if x.bdim is None else aten.select(x.value, x.bdim, i)

    rows = [
        overload(
            *(mapped(lambda x, i=i: element(x, i), a) for a in args),
            **{k: mapped(lambda x, i=i: element(x, i), v) for k, v in kwargs.items()},
        )
        for i in range(max(n, 1))
    ]
    return batched(aten.stack(rows), 0, level) if n > 0 else rows[0]


def again_inplace(op: Any, args: Any) -> None:
    """The write itself, on what was unwrapped."""
    names = [a.name for a in op.schema.arguments]
    n = sum(not a.kwarg_only for a in op.schema.arguments)
    op.inplace(*args[:n], **dict(zip(names[n:], args[n:], strict=True)))


def write(target: Any, source: Any, level: int) -> None:
    """Copy a tensor into what a batched one holds, converted and broadcast."""
    into, value = front(target, level), front(source, level)
    if is_batched(source, level):
        missing = target._a.ndim - source._a.ndim
        shape = value._a.shape
        if missing > 0:
            value = aten.reshape(value, (shape[0], *(1,) * missing, *shape[1:]))
    into.copy_(value)


def _recorded(args: Any, level: int) -> bool:
    """Whether what the wrappers hold wants gradients."""
    if NOGRAD and not TLS.grad:
        return False
    return any(isinstance(x, Tensor) and edge_of(held(x, level)) is not None for x in args)


def _refuse_write(name: str) -> NoReturn:
    raise RuntimeError(
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in"
        " extra_args that has more elements than `self`. This happened due to `other` being vmapped"
        f" over but `self` not being vmapped over in a vmap. Please try to use out-of-place"
        f" operators instead of {name}. If said operator is being called inside the PyTorch"
        " framework, make it batched first, for example with torch.zeros_like(other)."
    )


# ---- the transforms that are running -----------------------------------------------------------


class _Running(threading.local):
    def __init__(self) -> None:
        # By level; while a transform is handed over, others of its number may run.
        self.facts: dict[int, list[tuple[int, str]]] = {}


_running = _Running()


class Mode:
    """Stands in `modes.SLOW` while a vmap runs, so that makers of random numbers ask."""


_MODE = Mode()


def enter(size: int, randomness: str) -> int:
    """Begin a vmap over a batch of `size`; its level."""
    _rules.load()
    level = LEVELS.enter(Batched)
    _running.facts.setdefault(level, []).append((size, randomness))
    modes.SLOW.append(_MODE)
    return level


def leave() -> None:
    """End the innermost transform, a vmap."""
    modes.SLOW.remove(_MODE)
    _running.facts[len(LEVELS.running)].pop()
    LEVELS.leave()


def innermost() -> tuple[int, int, str] | None:
    """(level, size of the batch, randomness) of the innermost vmap that is running."""
    running = LEVELS.running
    for level in range(len(running), 0, -1):
        if running[level - 1] is Batched:
            return (level, *_running.facts[level][-1])
    return None


def facts(level: int) -> tuple[int, str]:
    """(size of the batch, randomness) of the vmap of this level."""
    return _running.facts[level][-1]


def declared(name: str, overload: str = "default") -> Any:
    """A declaration by its name."""
    return OPS[name][overload]


__all__ = [
    "MAKERS", "RULES", "Batched", "Mode", "batched", "declared", "enter", "facts", "front", "held",
    "innermost", "is_batched", "leave", "levels", "one_by_one", "rule_of", "size_of", "whole",
    "write",
]  # fmt: skip
