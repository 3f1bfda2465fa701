"""`autograd.Function`: operators with a gradient of their own, written by users.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import compute, writes
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import (
    CUSTOM,
    NOGRAD,
    TLS,
    MultiNode,
    Out,
    ViewMeta,
    base_of,
    edge_of,
    move_retained,
    next_seq,
    save,
    save_output,
    storage_of,
    unpack,
)
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad, set_grad_enabled


class FunctionNode(MultiNode):
    """The node of a custom Function; it is also the `ctx` that forward and backward get."""

    __slots__ = (
        "function",
        "_to_save",
        "_saved",
        "_dirty",
        "_non_differentiable",
        "_materialize",
        "_needs",
        "_metas",
        "__dict__",
    )
    saves = ("_saved",)
    _metas: tuple[bool, ...]
    _needs: tuple[bool, ...]

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self._to_save: Any = None
        self._saved: Any = None
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True
        self.outs = None

    def name(self) -> str:
        return self.function.__name__ + "Backward"

    # ---- what forward may call ----
    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; they come back, checked, as `ctx.saved_tensors`."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {type(t).__name__} is"
                    f" of type {type(t)}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        self.__dict__["saved_for_forward"] = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs forward has changed in place; they must be returned, too."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients reach backward as zeros (the default) or as None."""
        self._materialize = value

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        return self._needs

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        saved = self._saved
        if saved is None:
            return ()
        if type(saved) is not list:
            unpack(saved, self)  # released: raises
        return tuple(None if x is None else unpack(x, self) for x in saved)

    def apply(self, grads: Any) -> Any:
        """Run the user's backward."""
        if self._materialize:
            grads = tuple(
                (
                    g
                    if g is not None
                    else (
                        aten.zeros(*s, dtype=k.dtype, device=k.device)
                        if s
                        else aten.zeros((), dtype=k.dtype, device=k.device)
                    )
                )
                for g, (s, k) in zip(grads, self.outs, strict=True)
            )
        result = self.function.backward(self, *grads)
        if not isinstance(result, tuple):
            result = (result,)
        n = len(self._needs)
        if len(result) > n and all(r is None for r in result[n:]):
            result = result[:n]
        if len(result) != n:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {n},"
                f" got {len(result)})"
            )
        return tuple(r for r, is_tensor in zip(result, self._metas, strict=True) if is_tensor)


class Function:
    """Subclass with static `forward(ctx, *args)` and `backward(ctx, *grads)`, call `.apply(*args)`.

    Instead of one forward with ctx there may be `forward(*args)` and `setup_context(ctx, inputs,
    output)`.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function"
            " to use it with backward mode AD."
        )

    def __init__(self) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are"
            " all static, so you should invoke them on the class itself: use .apply()"
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        vjp = cls.__dict__.get("vjp")
        if vjp is not None and "backward" not in cls.__dict__:
            cls.backward = vjp  # type: ignore[method-assign]

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward without recording and put one node on the tape."""
        ctx = FunctionNode(cls)
        tensors = [x for x in args if isinstance(x, Tensor)]
        edges = [edge_of(x) for x in tensors]
        recording = (not NOGRAD or TLS.grad) and any(e is not None for e in edges)
        ctx._metas = tuple(isinstance(x, Tensor) for x in args)
        ctx._needs = tuple(isinstance(x, Tensor) and edge_of(x) is not None for x in args)
        before = {id(t): 0 if t._s is None else t._s.version for t in tensors}
        separate = cls.setup_context is not Function.setup_context
        with no_grad():
            if separate:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        many = isinstance(output, tuple)
        results = [
            _output(ctx, o, tensors, recording, before) for o in (output if many else (output,))
        ]
        if recording:
            _attach(ctx, results, tensors, edges)
            _keep(ctx, results)
        return tuple(results) if many else results[0]


def _output(
    ctx: FunctionNode, o: Any, inputs: list[Tensor], recording: bool, before: dict[int, int]
) -> Any:
    """One output as the caller gets it: inputs returned as they are become views of themselves."""
    if not isinstance(o, Tensor):
        return o
    dirty = any(o is d for d in ctx._dirty)
    if dirty:
        if recording and (not NOGRAD or TLS.grad):
            writes.check_tape(o, [x for x in inputs if x is not o])
        return o
    if not recording:
        return compute.alias(o) if any(o is x for x in inputs) else o
    if any(o is x for x in inputs):
        r = compute.alias(o, CUSTOM)
        return r
    if o._v is not None and any(base_of(o) is (base_of(x) or x) for x in inputs):
        o._v = ViewMeta(base_of(o), CUSTOM, o._s.stale if o._s is not None else 0)
    return o


def _attach(ctx: FunctionNode, results: list[Any], tensors: list[Tensor], edges: list[Any]) -> None:
    ctx.next = tuple(edges)
    ctx.seq = next_seq()
    ctx.shape = ctx.k = None
    outs: list[Any] = []
    nr = 0
    for r in results:
        if not isinstance(r, Tensor):
            outs.append(((), None))
            nr += 1
            continue
        outs.append((r._a.shape, r._k))
        skip = any(r is x for x in ctx._non_differentiable) or not r._k.differentiable
        if skip:
            if not any(r is d for d in ctx._dirty):
                r._e = None
        elif any(r is d for d in ctx._dirty):
            if r._v is not None:
                _rebase_view(ctx, r, nr)
            else:
                s = storage_of(r)
                s.stale += 1
                move_retained(r, ctx, nr)
                r._e = Out(ctx, nr)
        else:
            r._e = Out(ctx, nr)
        nr += 1
    ctx.outs = outs


def _rebase_view(ctx: FunctionNode, r: Tensor, nr: int) -> None:
    writes.rebase_history(r, ctx)


def _keep(ctx: FunctionNode, results: list[Any]) -> None:
    if ctx._to_save is None:
        return
    kept: list[Any] = []
    for t in ctx._to_save:
        if t is None:
            kept.append(None)
            continue
        nr = next((i for i, r in enumerate(results) if r is t), None)
        kept.append(save_output(t, nr) if nr is not None else save(t))
    ctx._saved = kept
    ctx._to_save = None


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward whose gradient cannot be differentiated again."""

    def wrapper(ctx: Any, *grads: Any) -> Any:
        with set_grad_enabled(False):
            result = fn(ctx, *grads)
        if not any(isinstance(g, Tensor) and g._e is not None for g in grads):
            return result
        many = isinstance(result, tuple)
        parts = result if many else (result,)
        with set_grad_enabled(True):
            marked = tuple(_marked(r) if isinstance(r, Tensor) else r for r in parts)
        return marked if many else marked[0]

    return wrapper


def _marked(r: Tensor) -> Tensor:
    """The same value with a history that refuses to be differentiated."""
    leaf = compute.alias(r)
    leaf._v = None
    return _Once.apply(leaf.requires_grad_())  # type: ignore[attr-defined]


class _Once(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


__all__ = ["Function", "FunctionNode", "once_differentiable"]
