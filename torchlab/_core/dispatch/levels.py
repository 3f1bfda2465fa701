"""Wrappers that function transforms put around tensors: duals of forward mode, batches of vmap.

Note [Levels]
~~~~~~~~~~~~~
`jvp`, `vmap` and their like run a function on wrapped tensors. Every transform that is running has
a number, its level; inner transforms have higher ones. A wrapper is an instance of a hidden
subclass of Tensor that derives from `Level`: it has the shape and type that the function may see,
no memory, and holds what it wraps, which may be a wrapper of a lower level.

An operator with wrappers among its arguments belongs to the highest level among them: `run` of the
wrapper's class is asked, with the declaration and all arguments by position. It computes by calling
operators on what it unwraps; arguments of lower levels are constants to it. So transforms nest in
any order, and each class knows of its own level only.

Every tensor, wrapped or not, has a tape of its own. Operators on what a wrapper holds are recorded
as ever: gradients of transforms further out. If a wrapper itself wants gradients (`grad` inside
`vmap`), the operator is recorded once more on the result, with wrappers saved, by the generated
record of its declaration; only arguments of this level count there (`edge_at`).

The way there is that of tensor subclasses with `__torch_dispatch__` (Note [Below autograd]): plain
tensors are asked nothing. Composites run their body; a class may say otherwise (`whole`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torchlab._core import layout as layouts
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import modes
from torchlab._core.dispatch.registry import OPS
from torchlab._core.dispatch.wrappers import wrapper_kind
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import NOGRAD, TLS, edge_of, geometry
from torchlab._core.tensor import Tensor, strides_of

CLASSES: list[type[Level]] = []


class Level(Tensor):
    """The base of the hidden classes of wrappers. `_level` is the transform's number."""

    __slots__ = ()  # (a tensor may become one by a write, so the layout is Tensor's)
    _level: int
    __torch_function__ = modes.disabled_function  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        cls.__name__ = cls.__qualname__ = "Tensor"
        cls.__module__ = Tensor.__module__
        CLASSES.append(cls)

    @classmethod
    def run(cls, op: Any, args: tuple[Any, ...], level: int) -> Any:
        """The result of a declared operator, all arguments by position."""
        raise NotImplementedError

    @classmethod
    def run_inplace(cls, op: Any, args: tuple[Any, ...], level: int) -> None:
        """Write the operator's result into `args[0]`; checks and tape are the caller's."""
        raise NotImplementedError

    @classmethod
    def run_overload(cls, overload: Any, args: Any, kwargs: Any, level: int) -> Any:
        """A call that no declaration stands for: a maker, a copy, a number read."""
        raise NotImplementedError

    @classmethod
    def lift(cls, x: Tensor, level: int) -> Any:
        """`x`, of a lower level, as a wrapper of this one: a constant."""
        raise NotImplementedError

    def each(self, fn: Callable[[Tensor], Tensor]) -> Any:
        """A wrapper like this of `fn` of what it holds, a view of it."""
        raise NotImplementedError

    def take(self, other: Any) -> None:
        """Hold from now on what `other`, of the same class, holds."""
        raise NotImplementedError

    def again(self, name: str, *args: Any) -> Any:
        """The result of an operator on this tensor (`alias`, `clone`), unknown to the tape of its
        level; tapes further out know of it as ever."""
        return hand_over(self, "run", OPS[name]["default"], (self, *args))

    @classmethod
    def whole(cls, op: Any) -> bool:
        """Whether a composite is to come to `run` itself, not its body."""
        return False

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Never reached: the sign for `python_key.dispatching` that calls go there."""
        return NotImplemented


def wrapper(cls: type, like: Tensor, level: int, without: int | None = None) -> Any:
    """A new wrapper of `cls` with the shape, strides, type and device of `like`; without its
    dimension `without`."""
    shape, strides = list(like._a.shape), list(strides_of(like))
    if without is not None:
        del shape[without], strides[without]
    at = 0 if like._s is None else geometry(like)[2]  # views keep their places in the base
    a = MetaArray(tuple(shape), like._k.dtype.np, tuple(strides), at)
    k = wrapper_kind(like._k.dtype, like._k.device)
    r: Any = object.__new__(cls)
    r._a, r._k = a, k if layouts.is_contiguous(a.shape, tuple(strides)) else k.v
    r._s = Storage(a)
    r._e = r._v = r._g = None
    r._level = level
    return r


def innermost(args: Iterable[Any]) -> Any:
    """The wrapper of the highest level among arguments, lists included; None if there is none."""
    found, level = None, 0
    for x in args:
        if isinstance(x, Tensor):
            if x._level > level:  # type: ignore[attr-defined]
                found, level = x, x._level  # type: ignore[attr-defined]
        elif type(x) in (list, tuple):
            y = innermost(x)
            if y is not None and y._level > level:
                found, level = y, y._level
    return found


def top_level(args: Iterable[Any]) -> int:
    """The highest level among arguments; 0 without wrappers."""
    found = innermost(args)
    return 0 if found is None else found._level


def edge_at(level: int, x: Any) -> Any:
    """The edge of a tensor for the tape of `level`: tensors of lower levels have none there."""
    return edge_of(x) if x._level == level else None


def recorded(args: Iterable[Any], level: int) -> bool:
    """Whether the tape of `level` is on and knows of an argument."""
    if NOGRAD and not TLS.grad:
        return False
    return any(isinstance(x, Tensor) and edge_at(level, x) is not None for x in args)


def again(op: Any, args: Sequence[Any]) -> Any:
    """Call a declared operator on what was unwrapped, all arguments by position, with all that
    further levels, modes and tapes have to do with it."""
    return modes.slow(op, tuple(args)) if modes.SLOW else op.core(*args)


def mapped(fn: Callable[[Any], Any], x: Any) -> Any:
    """`fn` of a tensor, of each in a list or tuple; anything else as it is."""
    if isinstance(x, Tensor):
        return fn(x)
    if type(x) in (list, tuple):
        return type(x)(mapped(fn, y) for y in x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(mapped(fn, y) for y in x))
    return x


class Levels(threading.local):
    """The transforms that are running in a thread by the class of their wrappers, the outermost
    first. The level of a transform is its place here, from 1."""

    def __init__(self) -> None:
        self.running: list[type[Level]] = []
        self.reverse = 0  # how many transforms of reverse mode run a function
        self.duals: dict[int, dict[int, Any]] = {}  # level → weak references, by id

    def enter(self, cls: type[Level]) -> int:
        """Begin a transform with wrappers of `cls`; its level."""
        self.running.append(cls)
        return len(self.running)

    def leave(self) -> None:
        """End the innermost transform."""
        self.running.pop()


LEVELS = Levels()


def hand_over(inner: Any, what: str, *args: Any) -> Any:
    """Let the class of a wrapper do `what` (a method's name): meanwhile its transform and those
    within are not running."""
    running, level = LEVELS.running, inner._level
    LEVELS.running = running[: level - 1]
    try:
        return getattr(type(inner), what)(*args, level)
    finally:
        LEVELS.running = running


def lifted(x: Tensor) -> Tensor:
    """`x` as a wrapper of the innermost transform that is running, or as it is without one. What
    `grad` differentiates must be: of its results, the tape of the highest level knows."""
    running = LEVELS.running
    if not running or x._level == len(running):  # type: ignore[attr-defined]
        return x
    return running[-1].lift(x, len(running))


modes.innermost.append(innermost)

__all__ = [
    "CLASSES", "LEVELS", "Level", "Levels", "again", "edge_at", "hand_over", "innermost", "lifted",
    "mapped", "recorded", "top_level", "wrapper",
]  # fmt: skip
