"""`autograd.Function`: operators with a gradient of their own, written by users.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import viewing, writes
from torchlab._core.dispatch.levels import LEVELS, innermost
from torchlab._core.dispatch.registry import aten
from torchlab._core.refusals import CUSTOM, MULTI_OUTPUT
from torchlab._core.tape import (
    ANOMALY,
    DETACHED,
    NOGRAD,
    RELEASED,
    TLS,
    AccumulateGrad,
    MultiNode,
    Node,
    Out,
    SavedTensor,
    base_of,
    cut_off,
    edge_of,
    mark_view,
    move_retained,
    next_seq,
    save,
    save_output,
    storage_of,
    transplanted,
    unpack,
    way_of,
)
from torchlab._core.tensor import Tensor
from torchlab.autograd.anomaly_mode import remember
from torchlab.autograd.grad_mode import no_grad, set_grad_enabled

transformed: list[Any] = []  # torchlab.autograd.function_transforms: calls on wrappers


class FunctionCtx:
    """What `forward` and `setup_context` may call on their `ctx`."""

    __slots__ = ()

    _to_save: Any
    _dirty: tuple[Tensor, ...]
    _non_differentiable: tuple[Tensor, ...]
    _materialize: bool
    __dict__: dict[str, Any]

    def save_for_backward(self: Any, *tensors: Tensor) -> None:
        """Keep tensors for backward; they come back, checked, as `ctx.saved_tensors`."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type"
                    f" {type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor) -> None:
        """Keep tensors for `jvp`."""
        self.__dict__["saved_for_forward"] = tensors

    def mark_dirty(self: Any, *args: Tensor) -> None:
        """Say which inputs forward has changed in place; they must be returned, too."""
        self._dirty = args

    def mark_non_differentiable(self: Any, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._non_differentiable = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Nothing: what shares memory is known."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically"
            " tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def set_materialize_grads(self: Any, value: bool) -> None:
        """Whether missing gradients reach backward as zeros (the default) or as None."""
        self._materialize = value


def _unpacked(saved: Any, ctx: Any) -> Any:
    """A tensor that a Function saved. One that `detach_` has cut off since has no history, while
    operators refuse it."""
    if DETACHED and type(saved) is tuple and len(saved) == 5 and cut_off(saved[4]):
        saved = (*saved[:4], None)
    return unpack(saved, ctx)


class FunctionNode(FunctionCtx, MultiNode):
    """The node of a custom Function; it is also the `ctx` that forward and backward get. Each
    Function has a class of its own, which its name is part of."""

    __slots__ = (
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
    runs_on_nothing = True
    _forward_cls: Any = None
    _metas: tuple[bool, ...]
    _needs: tuple[bool, ...]

    def __init__(self) -> None:
        super().__init__()
        self._to_save: Any = None
        self._saved: Any = None
        self._dirty = ()
        self._non_differentiable = ()
        self._materialize = True
        self._outs = None

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

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
        return tuple(None if x is None else _unpacked(x, self) for x in saved)

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        saved = self._saved
        if saved is RELEASED:
            unpack(saved, self)  # raises
        return tuple(SavedTensor(self, "_saved", i) for i in range(len(saved or ())))

    @property
    def to_save(self) -> Any:
        return self._to_save

    @property
    def dirty_tensors(self) -> Any:
        return self._dirty or None

    @property
    def non_differentiable(self) -> Any:
        return self._non_differentiable or None

    @property
    def materialize_grads(self) -> bool:
        return self._materialize

    def release(self) -> None:
        """Drop the saved values; who asks for them from now on is told."""
        self._saved = RELEASED

    def apply(self, grads: Any) -> Any:
        """Run the user's backward."""
        if self._materialize:
            grads = tuple(
                g if g is not None or k is None else _zeros(s, k)
                for g, (s, k) in zip(grads, self._outs, strict=True)
            )
        result = self._forward_cls.backward(self, *grads)
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
        for i, (r, is_tensor) in enumerate(zip(result, self._metas, strict=True)):
            if r is None:
                continue
            if not is_tensor:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position"
                    f" {i + 1}, but the corresponding forward input was not a Variable"
                )
            if not isinstance(r, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
        return tuple(r for r, is_tensor in zip(result, self._metas, strict=True) if is_tensor)


def _zeros(shape: Any, k: Any) -> Any:
    return aten.zeros(tuple(shape), dtype=k.dtype, device=k.device)


BackwardCFunction = FunctionNode


class Function(FunctionCtx):
    """Subclass with static `forward(ctx, *args)` and `backward(ctx, *grads)`, call `.apply(*args)`.

    Instead of one forward with ctx there may be `forward(*args)` and `setup_context(ctx, inputs,
    output)`.
    """

    _backward_cls: Any = None
    generate_vmap_rule = False

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

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs for tangents of the inputs (None where there is none)."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with"
            " forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """(output, out_dims) for a batch: `in_dims` says where it is in each argument; `info` has
        `batch_size` and `randomness`. Or let `generate_vmap_rule` be True."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or"
            " set generate_vmap_rule=True."
        )

    vjp = backward

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all"
            " static, so you should invoke them on the class itself: use .apply()",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use"
            " new-style autograd function with static forward method, and call .apply()."
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        vjp = cls.__dict__.get("vjp")
        if vjp is not None and "backward" not in cls.__dict__:
            cls.backward = vjp  # type: ignore[method-assign]
        facts = {"_forward_cls": cls, "__slots__": (), "__module__": "torch.autograd.function"}
        cls._backward_cls = type(cls.__name__ + "Backward", (FunctionNode,), facts)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward without recording and put one node on the tape."""
        if LEVELS.running:  # Note [Levels]
            inner = innermost(args)
            if inner is not None:
                return transformed[0](cls, args, inner)
        separate = cls.setup_context is not Function.setup_context
        if kwargs:
            args = _positional(cls.forward, args, kwargs, 0 if separate else 1)
        ctx = cls._backward_cls()
        tensors = [x for x in args if isinstance(x, Tensor)]
        edges = [edge_of(x) for x in tensors]
        recording = (not NOGRAD or TLS.grad) and any(e is not None for e in edges)
        ctx._metas = tuple(isinstance(x, Tensor) for x in args)
        ctx._needs = tuple(isinstance(x, Tensor) and edge_of(x) is not None for x in args)
        with no_grad():
            if separate:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        many = isinstance(output, tuple)
        outputs = output if many else (output,)
        for d in ctx._dirty:
            if not any(d is o for o in outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as"
                    " output. The inputs that are modified inplace must all be outputs of the"
                    " Function."
                )
        for d in ctx._dirty:  # all of them, and as often as they were named, before any is refused
            writes.wrote(d)
        creation = MULTI_OUTPUT if len(outputs) > 1 else CUSTOM
        results = [_output(ctx, o, tensors, recording, creation) for o in outputs]
        if recording:
            _attach(ctx, results, outputs, edges)
            _keep(ctx, results)
        ctx._dirty = ctx._non_differentiable = ()  # they may lead back here
        return tuple(results) if many else results[0]


def _positional(forward: Any, args: Any, kwargs: Any, skip: int) -> tuple[Any, ...]:
    """Arguments by keyword, put where forward has them; `skip`: its ctx is not among them."""
    parameters = list(inspect.signature(forward).parameters.values())[skip:]
    bound = inspect.Signature(parameters).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _output(ctx: FunctionNode, o: Any, inputs: list[Tensor], recording: bool, creation: int) -> Any:
    """One output as the caller gets it: inputs returned as they are become views of themselves."""
    if not isinstance(o, Tensor):
        return o
    mine = any(o is x for x in inputs)
    if any(o is d for d in ctx._dirty):
        if recording and mine:
            if o._v is not None and type(edge_of(o)) is not AccumulateGrad:
                if creation == MULTI_OUTPUT:
                    raise RuntimeError(
                        "If your Function modifies inplace an input that is a view of another"
                        " Tensor, your Function cannot return more than one Tensor. This is not"
                        " supported by the current autograd engine."
                    )
                o._g = None  # as PyTorch, also if the write is refused: it belonged to what was
            writes.check_tape(o, [x for x in inputs if x is not o])
        return aten.detach(o) if not recording and edge_of(o) is not None else o
    if mine and not recording and edge_of(o) is not None:
        return aten.detach(o)
    if mine:
        if edge_of(o) is not None and any(o is x for x in ctx._non_differentiable):
            return aten.detach(o)
        return viewing.alias(o, creation if recording else viewing.unrecorded())
    if recording and o._v is not None and any(base_of(o) is _root(x) for x in inputs):
        o._v = (base_of(o), creation, storage_of(o).version, way_of(o))
    return o


def _root(t: Tensor) -> Tensor:
    return t if t._v is None else base_of(t)


def _attach(ctx: FunctionNode, results: list[Any], outputs: Any, edges: list[Any]) -> None:
    """The node's edges, and its results' to it. `outputs`: what forward gave for each result."""
    ctx.next = tuple(edges)
    ctx._seq = next_seq()
    ctx._outs = [(r._a.shape, r._k) if isinstance(r, Tensor) else ((), None) for r in results]
    for nr, r in enumerate(results):
        if not isinstance(r, Tensor):
            continue
        o = outputs[nr]
        dirty = any(o is d for d in ctx._dirty)
        if any(o is x for x in ctx._non_differentiable) or not r._k.differentiable:
            if not dirty:
                r._e = None
        elif not dirty:
            r._e = Out(ctx, nr)
            if r._v is not None:
                mark_view(storage_of(r))
        elif r._v is not None:
            r._g = None  # as PyTorch: it belonged to what was there before
            writes.rebase_history(r, _Written(ctx, r))
        else:
            r._g = None
            transplanted(r)
            storage_of(r).stale = True
            move_retained(r, ctx, nr)
            r._e = Out(ctx, nr)
    if ANOMALY:
        remember(ctx)


class _Written(Node):
    """A Function's node as the node of a write into a view: one gradient instead of a tuple."""

    __slots__ = ("fn",)
    saves = ("fn",)

    def __init__(self, ctx: FunctionNode, view: Tensor) -> None:
        super().__init__()
        self.fn: Any = ctx
        self.next, self.shape, self.k = ctx.next, view._a.shape, view._k

    def name(self) -> str:
        return self.fn.name()

    def apply(self, g: Any) -> Any:
        return self.fn.apply((g,))

    def release(self) -> None:
        self.fn.release()


def _keep(ctx: FunctionNode, results: list[Any]) -> None:
    if ctx._to_save is None:
        return
    kept: list[Any] = []
    for t in ctx._to_save:
        if t is None:
            kept.append(None)
            continue
        nr = next((i for i, r in enumerate(results) if r is t), None)
        if nr is not None and type(t._e) is Out and t._e.node is ctx:
            kept.append(save_output(ctx, t, nr))
        else:
            kept.append(save(t))
    ctx._saved = kept
    ctx._to_save = None


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward whose gradient cannot be differentiated again."""

    def wrapper(ctx: Any, *grads: Any) -> Any:
        with set_grad_enabled(False):
            result = fn(ctx, *grads)
        wanted = any(isinstance(g, Tensor) and g._e is not None for g in grads)
        if not wanted or NOGRAD and not TLS.grad:
            return result
        many = isinstance(result, tuple)
        parts = result if many else (result,)
        with set_grad_enabled(True):
            marked = tuple(_marked(r) if isinstance(r, Tensor) else r for r in parts)
        return marked if many else marked[0]

    return wrapper


def _marked(r: Tensor) -> Tensor:
    """The same value with a history that refuses to be differentiated."""
    leaf = viewing.alias(r)
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


class InplaceFunction(Function):
    """A Function that remembers whether it works in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionNode",
    "InplaceFunction",
    "once_differentiable",
]
