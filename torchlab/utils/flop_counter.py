"""`torch.utils.flop_counter`: how many floating-point operations a program does, by module.

A multiplication and an addition count as two. Counted are matrix products, convolutions and
attention, forward and backward; what is element by element is not.

Source: https://docs.pytorch.org/docs/2.13/module_tracker.html and the docstring of
torch.utils.flop_counter.FlopCounterMode
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import prod
from typing import Any

from torchlab._core.pytree import tree_map
from torchlab._core.tensor import Tensor
from torchlab._ops import OpOverloadPacket, ops
from torchlab.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torchlab.utils._python_dispatch import TorchDispatchMode

aten = ops.aten
flop_registry: dict[Any, Callable[..., int]] = {}


def _shape(x: Any) -> Any:
    return tuple(x.shape) if isinstance(x, Tensor) else x


def _shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """Let a formula have shapes where the operator had tensors."""

    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        given = tree_map(_shape, (args, kwargs, out_val))
        return formula(*given[0], out_shape=given[2], **given[1])

    return counted


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: the function counts the operations of an operator (or of several).

    It gets the operator's arguments with shapes in place of tensors, and `out_shape`; with
    `get_raw` the tensors themselves and `out_val`.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        counted = formula if get_raw else _shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket"
                    f" (i.e. torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return register


@register_flop_formula(aten.mm)
def mm_flop(a: Any, b: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """2 · m · k · n."""
    return 2 * a[0] * a[1] * b[1]


@register_flop_formula(aten.addmm)
def addmm_flop(c: Any, a: Any, b: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's."""
    return mm_flop(a, b)


@register_flop_formula(aten.bmm)
def bmm_flop(a: Any, b: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """2 · batch · m · k · n."""
    return 2 * a[0] * a[1] * a[2] * b[2]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(c: Any, a: Any, b: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's."""
    return bmm_flop(a, b)


def conv_flop_count(x: Any, w: Any, out: Any, transposed: bool = False) -> int:
    """Two operations for each weight at each place of the output (of the input if transposed)."""
    places = (x if transposed else out)[2:]
    return 2 * x[0] * prod(places) * prod(w)


@register_flop_formula(aten.convolution)
def conv_flop(
    x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    *args: Any, out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """A convolution's."""
    return conv_flop_count(x, w, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    g: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Any, out_shape: Any = None,
) -> int:  # fmt: skip
    """As much as the forward for each of the two gradients that is needed."""
    return (output_mask[0] + output_mask[1]) * conv_flop_count(x, w, g, transposed)


def sdpa_flop_count(query: Any, key: Any, value: Any) -> int:
    """Two batched products: of queries with keys, and of weights with values."""
    *lead, q, d = query
    return 2 * prod(lead) * q * key[-2] * (d + value[-1])


@register_flop_formula(aten._scaled_dot_product_attention)
def sdpa_flop(q: Any, k: Any, v: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Attention's."""
    return sdpa_flop_count(q, k, v)


@register_flop_formula(aten._attention_backward)
def sdpa_backward_flop(
    g: Any, q: Any, k: Any, v: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Four products: the weights are kept from the forward."""
    return 2 * sdpa_flop_count(q, k, v)


class FlopCounterMode(TorchDispatchMode):
    """Counts between `with` and its end.

        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        counter.get_total_flops()

    depth: how far down the printed table goes; display: whether it is printed at the end;
    custom_mapping: {operator: formula(*args, out_val=…)} beside the registered ones.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.flop_registry = {**flop_registry, **(custom_mapping or {})}
        self._parents: list[str] = ["Global"]
        self._names: dict[int, str] = {}
        self._hooks: list[Any] = []
        self._backward: list[str] = []  # modules whose part of backward is running

    def get_total_flops(self) -> int:
        """All that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module: {operator: count}}; "Global" is the whole."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Module, count and share in lines, down to `depth`."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in self.flop_counts:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            rows.append(self._row(" " * level + name, sum(self.flop_counts[name].values()), total))
            for op, n in self.flop_counts[name].items():
                rows.append(self._row(" " * (level + 1) + f"- {op}", n, total))
        widths = [max(len(r[i]) for r in rows) for i in range(3)]
        rows.insert(1, tuple("-" * w for w in widths))  # type: ignore[arg-type]
        return "\n".join(
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows
        )

    @staticmethod
    def _row(name: str, n: int, total: int) -> tuple[str, str, str]:
        return name, _readable(n), f"{100 * n / total if total else 0:.2f}%"

    # ---- modules ----

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._names.clear()
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for hook in self._hooks:
            hook.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _enter_module(self, module: Any, inputs: Any) -> None:
        self._backward.clear()
        if id(module) not in self._names:
            self._name(module, type(module).__name__)
        self._parents.append(self._names[id(module)])

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._parents.pop()
        node = getattr(output, "grad_fn", None)
        if node is not None:  # what the module's part of backward does counts for it, too
            self._follow(name, inputs, node)

    def _follow(self, name: str, inputs: Any, node: Any) -> None:
        """In backward the module lasts from its output's node to its input's."""
        node.register_prehook(lambda grads: self._backward.append(name))
        start = inputs[0].grad_fn if inputs and isinstance(inputs[0], Tensor) else None
        if start is not None:
            start.register_prehook(lambda grads: self._close(name))

    def _close(self, name: str) -> None:
        if name in self._backward:
            self._backward.remove(name)

    def _name(self, module: Any, name: str) -> None:
        self._names[id(module)] = name
        for child_name, child in module.named_children():
            self._name(child, f"{name}.{child_name}")

    # ---- operators ----

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func.overloadpacket
        formula = self.flop_registry.get(packet)
        if formula is not None:
            n = formula(*args, **kwargs, out_val=out)
            for parent in dict.fromkeys((*self._parents, *self._backward)):
                self.flop_counts[parent][packet] += n
        return out


def _readable(n: int) -> str:
    """A count with three digits after the point and a unit, if it is large."""
    for unit, name in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if n >= unit:
            return f"{n / unit:.3f}{name}"
    return str(n)


__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]
