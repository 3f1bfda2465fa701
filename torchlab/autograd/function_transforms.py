"""Custom Functions on the wrappers of function transforms: `vmap` and `jvp` of `autograd.Function`.

A call with wrappers belongs to the innermost transform among them. vmap runs the Function's own
`vmap`, or with `generate_vmap_rule` a Function made of it whose forward and backward run inside a
vmap of their own. Forward mode runs its `jvp`. What they call is the Function again, on what the
wrappers hold: so tapes further out know of it. The tape of this level records it as ever.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.func.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torchlab._core import pytree
from torchlab._core.dispatch import batches, levels, python_key
from torchlab._core.dispatch.batches import Batched
from torchlab._core.dispatch.duals import dual, primal_of, tangent_of
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import function
from torchlab.autograd.function import Function
from torchlab.autograd.grad_mode import no_grad


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told first."""

    batch_size: int
    randomness: str


def _below(level: int, call: Any) -> Any:
    running = levels.LEVELS.running
    levels.LEVELS.running = running[: level - 1]
    try:
        return call()
    finally:
        levels.LEVELS.running = running


def call(cls: Any, args: tuple[Any, ...], inner: Any) -> Any:
    """`cls.apply(*args)` where `inner` is the wrapper of the innermost transform in `args`."""
    level = inner._level
    separate = cls.setup_context is not Function.setup_context
    if type(inner) is Batched:
        if not separate:
            raise RuntimeError(
                f"{cls.__name__}: In order to use an autograd.Function with functorch transforms"
                " (vmap, grad, jvp, jacrev, ...), it must override the setup_context staticmethod."
                " For more details, please see"
                " https://pytorch.org/docs/main/notes/extending.func.html"
            )
        output = _vmapped(cls, args, level)
    else:
        output = _pushed(cls, args, level, separate)
    if not levels.recorded(args, level):
        return output
    many = isinstance(output, tuple)
    results = [_lifted(r, inner, level) for r in (output if many else (output,))]
    output = tuple(results) if many else results[0]
    ctx = _context(cls, args, output if separate else None)
    tensors = [x for x in args if isinstance(x, Tensor)]
    edges = [levels.edge_at(level, x) for x in tensors]
    function._attach(ctx, results, results, edges)
    _keep_wrappers(ctx)
    return output


def _lifted(x: Any, inner: Any, level: int) -> Any:
    """A result that is the same for all, or has no tangent, for the tape of this level."""
    return type(inner).lift(x, level) if isinstance(x, Tensor) and x._level < level else x  # type: ignore[attr-defined]


def _context(cls: Any, args: tuple[Any, ...], output: Any) -> Any:
    """A node of the Function after `setup_context`, or after a forward that has it."""
    ctx = cls._backward_cls()
    ctx._metas = tuple(isinstance(x, Tensor) for x in args)
    ctx._needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
    with no_grad():
        if cls.setup_context is not Function.setup_context:
            cls.setup_context(ctx, args, output)
        else:
            cls.forward(ctx, *args)
    return ctx


def _keep_wrappers(ctx: Any) -> None:
    saved, ctx._to_save = ctx._to_save, None
    if saved is not None:
        ctx._saved = [None if t is None else python_key.keep(t) for t in saved]


# ---- vmap ----------------------------------------------------------------------------------------


def _dims(args: Any, level: int) -> Any:
    return pytree.tree_map(lambda x: x.bdim if batches.is_batched(x, level) else None, args)


def _unwrapped(args: Any, level: int) -> Any:
    return pytree.tree_map(lambda x: batches.held(x, level) if isinstance(x, Tensor) else x, args)


def _rewrapped(values: Any, dims: Any, level: int) -> Any:
    """Tensors as batched ones; the dimension None, or no tensor: as they are."""
    flat, spec = pytree.tree_flatten(values)
    places = [dims] * len(flat) if dims is None or isinstance(dims, int) else pytree.tree_leaves(
        dims
    )  # fmt: skip
    return spec.unflatten(
        batches.batched(x, d, level) if d is not None and isinstance(x, Tensor) else x
        for x, d in zip(flat, places, strict=True)
    )


def _vmapped(cls: Any, args: tuple[Any, ...], level: int) -> Any:
    own, has_own = cls.vmap, cls.vmap is not Function.vmap
    generated = cls.generate_vmap_rule
    if has_own and generated:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an"
            " overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the"
            " overridden vmap staticmethod to avoid ambiguity."
        )
    if not has_own and not generated:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please"
            " override and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    if has_own:
        if not batches.size_of(pytree.tree_leaves(args), level):  # constants only
            return _below(level, lambda: cls.apply(*_unwrapped(args, level)))
        return by_rule(own, f"vmap staticmethod of {cls.__name__}", args, level)
    size, randomness = batches.facts(level)
    dims, values = _dims(args, level), _unwrapped(args, level)
    if not batches.size_of(pytree.tree_leaves(args), level):
        return _below(level, lambda: cls.apply(*values))
    rule = _generated(cls, dims, size, randomness)
    output = _below(level, lambda: rule.apply(*values))
    return _rewrapped(output, rule.out_dims, level)


def by_rule(rule: Any, name: str, args: tuple[Any, ...], level: int) -> Any:
    """What `rule(info, in_dims, *args)` gives, which returns (output, out_dims)."""
    info, dims = VmapInfo(*batches.facts(level)), _dims(args, level)
    made = _below(level, lambda: rule(info, dims, *_unwrapped(args, level)))
    if not (isinstance(made, tuple) and len(made) == 2):
        raise RuntimeError(f"Expected the {name} to return (output, out_dims), got {type(made)}")
    return _rewrapped(*made, level)


def _summed(g: Any, dim: Any, own: Any, size: int) -> Any:
    """The gradient of an input: of one that all share, the sum over the batch; of one with the
    hidden dimension `own`, with that."""
    if g is None:
        return None
    if own is None:
        return g if dim is None else aten.sum(g, dim)
    if dim is None:
        shape = list(g.shape)
        shape.insert(own, size)
        return aten.expand(aten.unsqueeze(g, own), tuple(shape))
    return g if dim == own else aten.movedim(g, dim, own)


def _generated(cls: Any, dims: tuple[Any, ...], size: int, randomness: str) -> Any:
    """A Function on whole batches made of `cls`, for hidden dimensions at `dims`."""

    class Batch:
        """A vmap around the Function's own methods."""

        level: int

        def __enter__(self) -> Batch:
            self.level = batches.enter(size, randomness)
            return self

        def __exit__(self, *error: object) -> None:
            batches.leave()

        def wrap(self, values: Any, places: Any) -> Any:
            return _rewrapped(values, places, self.level)

    class Context:
        """The ctx that the Function sees: what it saves is unwrapped, and wrapped again."""

        def __init__(self, ctx: Any) -> None:
            self.__dict__["_ctx"] = ctx
            self.__dict__["_values"] = {}

        def save_for_backward(self, *tensors: Any) -> None:
            self._ctx.save_for_backward(*_unwrapped(tensors, self._level))
            self.__dict__["_backward_dims"] = _dims(tensors, self._level)

        def save_for_forward(self, *tensors: Any) -> None:
            self._ctx.save_for_forward(*_unwrapped(tensors, self._level))
            self.__dict__.setdefault("_backward_dims", _dims(tensors, self._level))

        @property
        def saved_tensors(self) -> Any:
            return tuple(
                batches.batched(t, d, self._level) if d is not None else t
                for t, d in zip(self._ctx.saved_tensors, self._backward_dims, strict=True)
            )

        @property
        def needs_input_grad(self) -> tuple[bool, ...]:
            return self._ctx.needs_input_grad

        def mark_dirty(self, *tensors: Any) -> None:
            raise RuntimeError("generate_vmap_rule: ctx.mark_dirty is not supported")

        def mark_non_differentiable(self, *tensors: Any) -> None:
            marked = {id(t) for t in tensors}
            self._ctx.mark_non_differentiable(
                *(v for o, v in zip(self._outputs, self._plain, strict=True) if id(o) in marked)
            )

        def set_materialize_grads(self, value: bool) -> None:
            self._ctx.set_materialize_grads(value)

        def __setattr__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                self.__dict__[name] = value
            else:
                self._values[name] = (_unwrapped(value, self._level), _dims(value, self._level))

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name not in self._values:
                raise AttributeError(name)
            value, places = self._values[name]
            return _rewrapped(value, places, self._level)

    class Generated(Function):
        out_dims: Any = None
        generate_vmap_rule = True
        _pending: Any = None

        @staticmethod
        def forward(*args: Any) -> Any:
            with Batch() as batch:
                output = cls.forward(*batch.wrap(args, dims))
                Generated.out_dims = _dims(output, batch.level)
                Generated._pending = output, batch.level
                return _unwrapped(output, batch.level)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            seen = Context(ctx)
            with Batch() as batch:
                seen._level = batch.level
                wrapped = batch.wrap(output, Generated.out_dims)
                seen._outputs = wrapped if isinstance(wrapped, tuple) else (wrapped,)
                seen._plain = output if isinstance(output, tuple) else (output,)
                cls.setup_context(seen, batch.wrap(inputs, dims), wrapped)
            ctx.seen, seen._outputs, seen._plain = seen, None, None

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            places = Generated.out_dims
            places = places if isinstance(places, tuple) else (places,)
            with Batch() as batch:
                seen = ctx.seen
                seen._level = batch.level
                given = (
                    None if g is None else batch.wrap(g, d)
                    for g, d in zip(grads, places, strict=True)
                )  # fmt: skip
                found = cls.backward(seen, *given)
                found = found if isinstance(found, tuple) else (found,)
                at, values = _dims(found, batch.level), _unwrapped(found, batch.level)
                own = dims[: len(values)]
            return tuple(_summed(g, d, o, size) for g, d, o in zip(values, at, own, strict=True))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            places = Generated.out_dims
            many = isinstance(places, tuple)
            with Batch() as batch:
                seen = ctx.seen
                seen._level = batch.level
                given = (
                    None if t is None else batch.wrap(t, d)
                    for t, d in zip(tangents, dims, strict=True)
                )  # fmt: skip
                found = cls.jvp(seen, *given)
                found = found if isinstance(found, tuple) else (found,)
                at, values = _dims(found, batch.level), _unwrapped(found, batch.level)
            own = places if many else (places,)
            made = tuple(
                None if t is None else _summed(t, d, o, size)
                for t, d, o in zip(values, at, own, strict=True)
            )
            return made if many else made[0]

    Generated.__name__ = Generated.__qualname__ = f"Vmapped{cls.__name__}"
    return Generated


# ---- forward mode --------------------------------------------------------------------------------


def _pushed(cls: Any, args: tuple[Any, ...], level: int, separate: bool) -> Any:
    def primal(x: Any) -> Any:
        return primal_of(x, level) if isinstance(x, Tensor) else x

    values = tuple(primal(x) for x in args)
    output = _below(level, lambda: cls.apply(*values))
    ctx = _below(level, lambda: _context(cls, values, output if separate else None))
    saved = ctx._to_save if ctx._to_save is not None else ctx.__dict__.get("saved_for_forward")
    ctx._to_save = None
    if saved is not None:
        ctx._saved = [None if t is None else python_key.keep(t) for t in saved]
    given = []
    for x, v in zip(args, values, strict=True):
        t = tangent_of(x, level) if isinstance(x, Tensor) else None
        if t is None and isinstance(v, Tensor) and ctx._materialize and v._k.differentiable:
            t = aten.zeros_like(v)
        given.append(t)
    if cls.jvp is Function.jvp:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with"
            f" forward mode AD. ({cls.__name__} has none)"
        )
    made = _below(level, lambda: cls.jvp(ctx, *given))
    many = isinstance(output, tuple)
    outputs: Sequence[Any] = output if many else (output,)
    tangents: Sequence[Any] = made if isinstance(made, tuple) else (made,)
    if len(outputs) != len(tangents):
        raise RuntimeError(
            f"jvp of {cls.__name__} returned {len(tangents)} tangents for {len(outputs)} outputs"
        )
    results = []
    for o, t in zip(outputs, tangents, strict=True):
        if t is None or not isinstance(o, Tensor):
            results.append(o)
            continue
        if tuple(t.shape) != tuple(o.shape):
            raise RuntimeError(
                f"jvp of {cls.__name__} returned a tangent of shape {list(t.shape)} for an output"
                f" of shape {list(o.shape)}"
            )
        results.append(dual(o, t, level))
    return tuple(results) if many else results[0]


function.transformed.append(call)

__all__ = ["VmapInfo", "call"]
