"""Makers of tensors, and other functions without a declaration, as dispatch modes see them.

`torch.zeros(2)` has no tensor argument and no declaration: its Python function makes the array. Its
slow path asks here first, with its own parameters. What a handler is told are PyTorch's operators
(`aten.zeros.default([2], device=cpu, pin_memory=False)`); `func(*args, **kwargs)` calls the
function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torchlab._core import device as devices
from torchlab._core.dispatch import modes
from torchlab._core.dispatch.arrivals import VIRTUAL
from torchlab._core.dispatch.overload import OpOverload, bind
from torchlab._core.dispatch.registry import FACES, METHODS, OPS
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor

_MADE = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_GENERATOR = "*, Generator? generator" + _MADE[1:]
_FORMAT = ", MemoryFormat? memory_format=None"
_AT = "*, Generator? generator=None"


def _sizes(p: dict[str, Any]) -> tuple[Any, ...]:
    size = (p["size"], *p.get("more", ()))
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    return (list(size),)


def _plain(*names: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """The parameters of these names, as far as they are given."""

    def read(p: dict[str, Any]) -> tuple[Any, ...]:
        values = [p[n] for n in names]
        while values and values[-1] is None:
            values.pop()
        return tuple(list(v) if isinstance(v, tuple) else v for v in values)

    return read


def _full(p: dict[str, Any]) -> tuple[Any, ...]:
    return (*_sizes(p), p["fill_value"])


def _self_sizes(p: dict[str, Any]) -> tuple[Any, ...]:
    return (p["self"], *_sizes(p))


def _self_full(p: dict[str, Any]) -> tuple[Any, ...]:
    return (p["self"], *_full(p))


def _arange(p: dict[str, Any]) -> tuple[Any, ...]:
    start, end, step = p["start"], p["end"], p["step"]
    if end is None:
        return (start,)
    return (start, end) if step in (None, 1) else (start, end, step)


def _randint(p: dict[str, Any]) -> tuple[Any, ...]:
    low, high, size = p["low"], p["high"], p["size"]
    if size is None:
        return low, list(high)
    return (low, list(size)) if high is None else (low, high, list(size))


def _randint_like(p: dict[str, Any]) -> tuple[Any, ...]:
    return (p["self"], p["low"]) if p["high"] is None else (p["self"], p["low"], p["high"])


# name → (positional arguments of a call, kind, schema without what all of a kind have).
_READ: dict[str, tuple[Callable[[dict[str, Any]], tuple[Any, ...]], str]] = {
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), (_sizes, "made")),
    "full": (_full, "made"),
    "eye": (_plain("n", "m"), "made"),
    "arange": (_arange, "made"),
    "linspace": (_plain("start", "end", "steps"), "made"),
    "randint": (_randint, "made"),
    "randperm": (_plain("n"), "made"),
    "scalar_tensor": (_plain("s"), "made"),
    "empty_strided": (_plain("size", "stride"), "made"),
    **{
        n: (_plain("self"), "like")
        for n in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
    },
    "full_like": (_plain("self", "fill_value"), "like"),
    "randint_like": (_randint_like, "like"),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), (_self_sizes, "like")),
    "new_full": (_self_full, "like"),
    "new_empty_strided": (_plain("self", "size", "stride"), "like"),
    "copy_": (_plain("self", "other"), "write"),
    "_local_scalar_dense": (_plain("self"), "draw"),
    "bernoulli_": (_plain("self", "p"), "write"),
    "normal_": (_plain("self", "mean", "std"), "write"),
    "uniform_": (_plain("self", "from_", "to"), "write"),
    "exponential_": (_plain("self", "lambd"), "write"),
    "bernoulli": (_plain("self", "p"), "draw"),
}
_TEXT: dict[str, str] = {
    **{
        f"{n}.default": f"(SymInt[] size, {_MADE}) -> Tensor"
        for n in ("zeros", "ones", "rand", "randn")
    },
    **{f"{n}.generator": f"(SymInt[] size, {_GENERATOR}) -> Tensor" for n in ("rand", "randn")},
    "empty.memory_format": f"(SymInt[] size, {_MADE}{_FORMAT}) -> Tensor",
    "full.default": f"(SymInt[] size, Scalar fill_value, {_MADE}) -> Tensor",
    "eye.default": f"(SymInt n, {_MADE}) -> Tensor",
    "eye.m": f"(SymInt n, SymInt m, {_MADE}) -> Tensor",
    "arange.default": f"(Scalar end, {_MADE}) -> Tensor",
    "arange.start": f"(Scalar start, Scalar end, {_MADE}) -> Tensor",
    "arange.start_step": f"(Scalar start, Scalar end, Scalar step=1, {_MADE}) -> Tensor",
    "linspace.default": f"(Scalar start, Scalar end, int steps, {_MADE}) -> Tensor",
    "randint.default": f"(SymInt high, SymInt[] size, {_MADE}) -> Tensor",
    "randint.low": f"(SymInt low, SymInt high, SymInt[] size, {_MADE}) -> Tensor",
    "randint.generator": f"(SymInt high, SymInt[] size, {_GENERATOR}) -> Tensor",
    "randint.low_generator": f"(SymInt low, SymInt high, SymInt[] size, {_GENERATOR}) -> Tensor",
    "randperm.default": f"(SymInt n, {_MADE}) -> Tensor",
    "randperm.generator": f"(SymInt n, {_GENERATOR}) -> Tensor",
    "scalar_tensor.default": f"(Scalar s, {_MADE}) -> Tensor",
    "empty_strided.default": f"(SymInt[] size, SymInt[] stride, {_MADE}) -> Tensor",
    **{
        f"{n}.default": f"(Tensor self, {_MADE}{_FORMAT}) -> Tensor"
        for n in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
    },
    "randint_like.default": f"(Tensor self, SymInt high, {_MADE}{_FORMAT}) -> Tensor",
    "randint_like.low_dtype": f"(Tensor self, SymInt low, SymInt high, {_MADE}{_FORMAT}) -> Tensor",
    "full_like.default": f"(Tensor self, Scalar fill_value, {_MADE}{_FORMAT}) -> Tensor",
    **{
        f"{n}.default": f"(Tensor self, SymInt[] size, {_MADE}) -> Tensor"
        for n in ("new_zeros", "new_ones", "new_empty")
    },
    "new_full.default": f"(Tensor self, SymInt[] size, Scalar fill_value, {_MADE}) -> Tensor",
    "new_empty_strided.default": (
        f"(Tensor self, SymInt[] size, SymInt[] stride, {_MADE}) -> Tensor"
    ),
    "copy_.default": "(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "normal_.default": f"(Tensor(a!) self, float mean=0, float std=1, {_AT}) -> Tensor(a!)",
    "uniform_.default": f"(Tensor(a!) self, float from=0, float to=1, {_AT}) -> Tensor(a!)",
    "exponential_.default": f"(Tensor(a!) self, float lambd=1, {_AT}) -> Tensor(a!)",
    "bernoulli_.float": f"(Tensor(a!) self, float p=0.5, {_AT}) -> Tensor(a!)",
    "bernoulli_.Tensor": f"(Tensor(a!) self, Tensor p, {_AT}) -> Tensor(a!)",
    "bernoulli.default": f"(Tensor self, {_AT}) -> Tensor",
    "bernoulli.p": f"(Tensor self, float p, {_AT}) -> Tensor",
    "lift_fresh.default": "(Tensor(a) self) -> Tensor(a)",
    "_local_scalar_dense.default": "(Tensor self) -> Scalar",
    "_to_copy.default": f"(Tensor self, {_MADE}, bool non_blocking=False{_FORMAT}) -> Tensor",
}


def _which(name: str, args: tuple[Any, ...], generator: bool) -> str:
    """The overload that PyTorch chooses."""
    if name == "bernoulli_":
        return "Tensor" if len(args) == 2 and isinstance(args[1], Tensor) else "float"
    if name == "empty":
        return "memory_format"
    if name == "eye":
        return "m" if len(args) == 2 else "default"
    if name == "arange":
        return ("default", "start", "start_step")[len(args) - 1]
    if name == "bernoulli":
        return "p" if len(args) == 2 else "default"
    if name == "randint_like":
        return "low_dtype" if len(args) == 3 else "default"
    low = name == "randint" and len(args) == 3
    if generator and f"{name}.generator" in _TEXT:
        return "low_generator" if low else "generator"
    return "low" if low else "default"


def overload(name: str, which: str) -> OpOverload:
    """The overload of a function of this file."""
    key = f"{name}.{which}"
    found = VIRTUAL.get(key)
    if found is None:
        found = VIRTUAL[key] = OpOverload(key + _TEXT[key])
        found.run = _runner(name, found)
    return found


def names() -> set[str]:
    """The operators of this file."""
    return {key.partition(".")[0] for key in _TEXT}


def overloads_of(name: str) -> list[str]:
    """The overloads of one of them."""
    return [w for n, _, w in (key.partition(".") for key in _TEXT) if n == name]


def _runner(name: str, found: OpOverload) -> Callable[[Any, Any], Any]:
    def run(args: Any, kwargs: Any) -> Any:
        bind(found.parsed, args, kwargs)
        if modes.dispatched():  # a mode further out
            return modes.python_ask[0](found, args, kwargs)
        given = {k: v for k, v in kwargs.items() if v is not None or k == "generator"}
        if name in ("lift_fresh", "_local_scalar_dense"):
            return args[0] if name == "lift_fresh" else FACES["item"].body(*args)
        if name == "_to_copy":
            return FACES["to"].body(*args, copy=True, **given)
        given.pop("pin_memory", None)
        if name in ("new_empty_strided", "scalar_tensor"):
            given.pop("layout", None)
        owner = FACES.get(name)
        body = owner.body if owner is not None else METHODS[name][0].form(METHODS[name][1])
        return body(*args, **given)

    return run


elements: list[Any] = []  # torchlab._core.dispatch.batching.functions: once for each element
looped: list[Any] = []  # torchlab._core.dispatch.batching.functions: faces that look at the data
drawn: list[Any] = []  # torchlab._core.dispatch.batching.random: random numbers inside vmap


def transformed(body: Callable[..., Any], parameters: dict[str, Any], *looked_at: str) -> Any:
    """What vmap makes of a function that looks at the data of the arguments `looked_at`;
    NotImplemented if none of these is wrapped. Asked while `modes.SLOW` is not empty."""
    for ask in elements:
        seen = ask(body, parameters, looked_at)
        if seen is not NotImplemented:
            return seen
    return NotImplemented


def told(name: str, parameters: dict[str, Any]) -> Any:
    """What the thread's modes make of a call, and wrappers among its arguments; None if there are
    none of either."""
    for draw in drawn:
        seen = draw(name, parameters)
        if seen is not NotImplemented:
            return seen
    if name not in _READ:  # PyTorch makes it of several operators
        if any(getattr(m, "no_data", False) for m in TLS.dispatch_modes):
            return _made_and_told(name, parameters)
        return None
    read, kind = _READ[name]
    args = read(parameters)
    if not modes.dispatched() and not modes.dispatch_handlers[0](args):
        return None
    if any(isinstance(a, Tensor) and a._exotic for a in args):
        return None
    generator = parameters.get("generator")
    named: dict[str, Any] = {} if generator is None else {"generator": generator}
    if kind in ("made", "like"):
        for key in ("dtype", "layout"):
            if parameters.get(key) is not None:
                named[key] = parameters[key]
        dev = parameters.get("device")
        if dev is not None or kind == "made":
            named["device"] = devices.as_device(dev)
        if parameters.get("pin_memory", False) is not None:  # None: PyTorch's C++ calls, too
            named["pin_memory"] = bool(parameters.get("pin_memory", False))
        if parameters.get("memory_format") is not None:
            named["memory_format"] = parameters["memory_format"]
    found = overload(name, _which(name, args, generator is not None))
    facts = found.parsed.arguments
    while kind == "write" and len(args) > 1 and _at_default(args[-1], facts[len(args) - 1]):
        args = args[:-1]
    out = parameters.get("out")
    result = modes.python_ask[0](found, args, named)
    if out is not None:
        return out.resize_(result.shape).copy_(result)
    if kind == "write":
        return args[0]
    return result.requires_grad_() if parameters.get("requires_grad") else result


def _made_and_told(name: str, parameters: dict[str, Any]) -> Any:
    """A maker that no operator stands for, while a mode wants tensors without data: what it makes
    comes to the mode as Python's data do. None where the call cannot be repeated by names."""
    owner = FACES.get(name)
    if owner is None or "more" in parameters or parameters.get("out") is not None:
        return None
    stack, TLS.dispatch_modes = TLS.dispatch_modes, []
    try:
        made = owner.function(**parameters)
    finally:
        TLS.dispatch_modes = stack
    return fresh(made)


def _on_wrapper(face: Any, args: Any, kwargs: Any) -> Any:
    """A maker called as a function whose first argument is no plain tensor."""
    if not modes.dispatch_handlers[0](args):
        return NotImplemented
    for ask in looped:
        seen = ask(face, args, kwargs)
        if seen is not NotImplemented:
            return seen
    if face.name in _WRITES:
        return modes.python_write[0](_WRITES[face.name](*args[1:], *kwargs.values()), args)
    if face.name not in _READ or face.name == "copy_":  # whose body tells, and records
        return NotImplemented
    return told(face.name, _named(face.body, args, kwargs))


def _named(body: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    bound = inspect.signature(body).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


class Maker:
    """Stands in a wrapper's class for a method that makes tensors: `w.new_zeros(2)`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, cls: type) -> Any:
        method = getattr(Tensor, self.name)
        if instance is None:
            return method
        if self.name in _WRITES:
            return lambda *values: modes.python_write[0](
                _WRITES[self.name](*values), (instance, *values)
            )
        convert = _CONVERSIONS.get(self.name)
        if convert is not None:
            return lambda: convert(instance.item())
        own = "_local_scalar_dense" if self.name == "item" else self.name
        body = METHODS[self.name][0].body
        return lambda *args, **kwargs: told(own, _named(body, (instance, *args), kwargs))


def maker_methods() -> list[str]:
    """The methods of this file."""
    every = (*(n for n in _READ if n != "copy_"), "item", *_WRITES, *_CONVERSIONS)
    return [n for n in every if n in METHODS and hasattr(METHODS[n][0], "body")]


# Methods that write without a declaration of their own: the declaration that they choose.
_WRITES: dict[str, Callable[..., Any]] = {
    "fill_": lambda value: OPS["_fill"]["Tensor" if isinstance(value, Tensor) else "Scalar"],
    "zero_": lambda: OPS["zero"]["default"],
}
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "__float__": float,
    "__int__": int,
    "__complex__": complex,
    "__bool__": bool,
    "__index__": int,
}


def _at_default(v: Any, fact: Any) -> bool:
    return fact.has_default and not isinstance(v, Tensor) and v == fact.default


def fresh(t: Tensor) -> Tensor:
    """A tensor made from Python's data: PyTorch passes it through `aten.lift_fresh`."""
    if not modes.dispatched():
        return t
    return modes.python_ask[0](overload("lift_fresh", "default"), (t,), {})


modes.maker_told.append(_on_wrapper)

__all__ = ["Maker", "maker_methods", "fresh", "overload", "told", "transformed"]
