"""More of what random autograd programs may name: see `dag_steps.py`, and `dag_world.py` for the
common names. Functions of one tensor and of two, several of which break a rule; blocks for
checkpoints; a module with its hooks; hooks that do something."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class Boom(Exception):
    """What a hook raises."""


def _of_one(torch: Any, log: list[Any], seen: Callable[[Any], Any]) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            log.append(("Once", seen(g), x.requires_grad, torch.is_grad_enabled()))
            return g * x.cos()

    class Saves(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            z = y + 1
            ctx.save_for_backward(x, y, None, z)
            return z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, nothing, z = ctx.saved_tensors
            log.append(("Saves", seen((x, y, nothing, z, g)), z.grad_fn is None))
            return g * y + 0 * ctx.saved_tensors[3]

    class Same2(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x, x * 2, x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            log.append(("Same2", seen(grads)))
            return grads[0] + 2 * grads[1]

    class Quiet(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Quiet", seen(g)))
            return g

    class Nested(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return Once.apply(x) + x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                z = x.detach().requires_grad_()
                (h,) = torch.autograd.grad(Once.apply(z).sum(), z)
            return Saves.apply(g) * 0 + g * (h + 1)

    class WrongCount(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    class WrongShape(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.ones(5, 7)

    class Tail(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any = 3) -> Any:
            return x * 2, "text", None

        @staticmethod
        def backward(ctx: Any, g: Any, *more: Any) -> Any:
            log.append(("Tail", seen(g), seen(more)))
            return g * 2, None, None

    outside = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)

    class Outside(Function):
        """Gives back a tensor that is neither made here nor an input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return outside.detach() + 0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    class Flags(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            log.append(("flags", x.requires_grad, y.requires_grad, y.grad_fn is None, x.is_leaf))
            ctx.x = x
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Flags", seen(ctx.x), ctx.x.requires_grad, ctx.needs_input_grad))
            return g * ctx.x

    class NotMarked(Function):
        """Writes to its input without saying so."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            return x + 0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class ViewOfWritten(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append(("ViewOfWritten", seen((g, h))))
            return g * 2

    class Grows(Function):
        """Its result is bigger than its input; the gradient is summed by the engine."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch.stack([x, x])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    class AsFloat(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.float()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("AsFloat", seen(g)))
            return g

    class Late(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.tanh()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output, *inputs)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, x = ctx.saved_tensors
            log.append(("Late", seen((g, x, y)), y.grad_fn is None, x.is_leaf))
            return g * (1 - y * y)

    class Detached(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g.detach() * x.detach()

    made = (Once, Saves, Same2, Quiet, Nested, WrongCount, WrongShape, Tail, Outside, Flags,
            NotMarked, ViewOfWritten, Grows, AsFloat, Late, Detached)  # fmt: skip
    return {f.__name__: f for f in made}


def _of_two(torch: Any, log: list[Any], seen: Callable[[Any], Any]) -> dict[str, Any]:
    Function = torch.autograd.Function

    class WriteBoth(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.mul_(2)
            y.add_(1)
            ctx.mark_dirty(x, y)
            return x, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append(("WriteBoth", seen((g, h))))
            return g * 2, h

    class WriteOne(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            x.mul_(y)
            ctx.mark_dirty(x)
            return x, x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (y,) = ctx.saved_tensors
            log.append(("WriteOne", seen((g, h, y))))
            return (g + h) * y, None

    class Swap(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return y, x

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append(("Swap", seen((g, h)), ctx.needs_input_grad))
            return h, g

    class TwoViews(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.shapes = x.shape, y.shape
            return x.view(-1), y.view(-1)

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g.reshape(ctx.shapes[0]), h.reshape(ctx.shapes[1])

    class Optional(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, z: Any = None) -> Any:
            ctx.save_for_backward(x, z)
            ctx.set_materialize_grads(False)
            return (x * 2 if ctx.needs_input_grad[0] else None), y.clone()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append(("Optional", seen((g, h)), ctx.needs_input_grad))
            return g, h

    class Linear(Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y, x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            a = g * y + h if ctx.needs_input_grad[0] else None
            b = g * x + h if ctx.needs_input_grad[1] else None
            log.append(("Linear", seen((a, b))))
            return a, b

    made = (WriteBoth, WriteOne, Swap, TwoViews, Optional, Linear)
    return {f.__name__: f for f in made}


def _blocks(torch: Any, env: dict[str, Any], seen: Callable[[Any], Any]) -> dict[str, Any]:
    log = env["log"]
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    def block(label: str, how: str) -> Any:
        def run(x: Any, y: Any) -> Any:
            log.append(("block", label, torch.is_grad_enabled(), x.requires_grad, x.is_leaf))
            z = (x * y).tanh()
            if how == "write":
                z = z * 2
                z.mul_(x)
            if how == "function":
                z = env["Twice"].apply(z)
            if how == "hook" and z.requires_grad:
                z.register_hook(lambda g: log.append(("inside", label, seen(g))))
            if how == "boom":
                raise Boom(label)
            if how == "grad" and x.requires_grad and torch.is_grad_enabled():
                return torch.autograd.grad(z.sum(), x, create_graph=True)[0]
            if how == "nested":
                z = checkpoint(block(label + "n", "plain"), z, x, use_reentrant=False)
            return None if how == "none" else z.sin()

        return run

    return {"block": block, "checkpoint": checkpoint}


def _modules(torch: Any, log: list[Any], seen: Callable[[Any], Any]) -> dict[str, Any]:
    class Scale(torch.nn.Module):
        def __init__(self, label: str) -> None:
            super().__init__()
            self.label = label
            self.w = torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))

        def forward(self, x: Any) -> Any:
            return x * self.w

    def changed(grads: Any, reply: str, label: str) -> Any:
        if reply == "boom":
            raise Boom(label)
        if reply == "change":
            return tuple(g if g is None else g * 2 for g in grads)
        return None

    def post_module(label: str, reply: str) -> Any:
        def call(module: Any, inputs: Any, outputs: Any) -> Any:
            log.append(("post_module", label, module.label, seen(inputs), seen(outputs)))
            return changed(inputs, reply, label)

        return call

    def pre_module(label: str, reply: str) -> Any:
        def call(module: Any, outputs: Any) -> Any:
            log.append(("pre_module", label, module.label, seen(outputs)))
            return changed(outputs, reply, label)

        return call

    def forward_module(label: str, reply: str) -> Any:
        def call(module: Any, inputs: Any, output: Any) -> Any:
            log.append(("forward_module", label, seen(output)))
            return output * 2 if reply == "change" else changed((), reply, label)

        return call

    return {
        "Scale": Scale, "post_module": post_module, "pre_module": pre_module,
        "forward_module": forward_module,
    }  # fmt: skip


def _doing(torch: Any, env: dict[str, Any], seen: Callable[[Any], Any]) -> dict[str, Any]:
    log, kept = env["log"], env["kept"]

    def doing(label: str, what: str, key: str, x: Any) -> Any:
        inner = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        loss = (inner * inner).sum()

        def call(g: Any) -> Any:
            log.append(("doing", label, what, seen(g)))
            if what == "register":
                x.register_hook(lambda h: log.append(("registered", label, seen(h))))
            if what == "remove":
                kept[key].remove()
            if what == "backward":
                loss.backward(retain_graph=True)
                log.append(("inner", seen(inner.grad)))
            if what == "grad" and torch.is_grad_enabled():
                log.append(("grad", seen(torch.autograd.grad(loss, inner, create_graph=True)[0])))
            return {"float": g.float, "detach": g.detach}.get(what, lambda: None)()

        return call

    def pair(label: str, reply: str) -> Any:
        def pack(t: Any) -> Any:
            log.append(("pack", label, seen(t)))
            if reply == "boom":
                raise Boom(label)
            return 3 if reply == "number" else t.detach().clone()

        def unpack(p: Any) -> Any:
            log.append(("unpack", label, seen(p)))
            return p * 2 if reply == "double" else p

        return pack, unpack

    return {"doing": doing, "pair": pair}


def rare_names(torch: Any, env: dict[str, Any], seen: Callable[[Any], Any]) -> dict[str, Any]:
    """The names that only rarer steps use, for a world that has the common ones."""
    log = env["log"]
    return {
        **_of_one(torch, log, seen), **_of_two(torch, log, seen), **_blocks(torch, env, seen),
        **_modules(torch, log, seen), **_doing(torch, env, seen),
    }  # fmt: skip
