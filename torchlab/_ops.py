"""`torchlab.ops`: every operator overload by its name, `torchlab.ops.aten.add.Tensor`.

An overload is an `OpOverload`: one form (functional, in place, out=) of a declaration. What a
dispatch mode is given and what this name space gives are one object.

Source: https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchlab._core.dispatch import arrivals, factories, modes, overload, registry
from torchlab._core.dispatch.op import Op
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.ops._quantized_convolution import LIBRARY
from torchlab._core.tape import TLS

CUSTOM: dict[str, dict[str, dict[str, Op]]] = {}  # "mylib" → "sin" → {"default": Op}


class OpOverloadPacket:
    """All overloads of one name. Calling it picks the overload as PyTorch's public name does."""

    def __init__(
        self, namespace: str, name: str, found: dict[str, OpOverload], face: Any = None
    ) -> None:
        self._namespace = namespace
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._found = found
        self._face = face

    def overloads(self) -> list[str]:
        """The names of the overloads, in the order of declaration."""
        return list(self._found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if TLS.function_modes or any(not modes.is_exotic(x) for x in modes.overriding(given)):
            return modes.ask_functions(self, given, args, kwargs)
        if self._face is not None:
            return self._face(*args, **kwargs)
        refused: Exception | None = None
        for o in self._found.values():
            try:
                overload.bind(o.parsed, args, kwargs)
            except (RuntimeError, TypeError) as error:
                refused = refused or error
            else:
                return o(*args, **kwargs)
        assert refused is not None
        raise refused

    def __getattr__(self, name: str) -> Any:
        overload = self._found.get(name)
        if overload is None:
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{name}'; it has "
                f"{', '.join(self._found)}"
            )
        return overload

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._found]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class OpNamespace:
    """`torchlab.ops.<namespace>`: the packets of one library."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._packets: dict[str, OpOverloadPacket] = {}

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found, face = _overloads(self.__name__, name)
        if not found:
            raise AttributeError(
                f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'"
            )
        known = self._packets.get(name)
        if known is not None and known._found == found:  # custom operators may be defined anew
            return known
        packet = self._packets[name] = OpOverloadPacket(self.__name__, name, found, face)
        if self.__name__ == "aten":
            self.__dict__[name] = packet
        return packet

    def __dir__(self) -> list[str]:
        if self.__name__ != "aten":
            return sorted(CUSTOM.get(self.__name__, {}))
        inplace = (
            n + "_" for n, ops in registry.OPS.items() if any(o.inplace_form for o in ops.values())
        )
        return sorted({*filter(None, _names()), *inplace, *factories.names()})

    def __repr__(self) -> str:
        return f"<OpNamespace '{self.__name__}'>"


def _overloads(namespace: str, name: str) -> tuple[dict[str, Any], Any]:
    """The overloads of a name, and what a call without an overload runs (None: the first)."""
    if namespace == "quantized" and name in LIBRARY:
        return LIBRARY[name], LIBRARY[name]["default"]
    if namespace != "aten":
        declared = CUSTOM.get(namespace, {}).get(name, {})
        return {o: arrivals.overload_of(op) for o, op in declared.items()}, None
    found: dict[str, OpOverload] = {}
    for o in arrivals.VIRTUAL.values():
        if o._opname == name:
            found.setdefault(o._overloadname, o)
    for o in _forms_of(name):
        found.setdefault(o._overloadname, o)
    for which in factories.overloads_of(name):
        o = factories.overload(name, which)
        found.setdefault(o._overloadname, o)
    face = registry.aten.__getattr__(name) if name in registry.FACES else None
    return found, face


def _forms_of(name: str) -> Iterator[OpOverload]:
    """What the declarations give under a name of PyTorch's."""
    torch_names = _names()
    for key in torch_names.get(name, ()):
        own, _, which = key.partition(".")
        yield from _of(registry.OPS[own][which], "functional")
    if name.endswith("_"):
        for key in torch_names.get(name[:-1], ()):
            own, _, which = key.partition(".")
            op = registry.OPS[own][which]
            if op.inplace_form or own in ("_fill", "zero"):
                yield from _of(op, "inplace")
    for key in torch_names.get(name, ()):
        own, _, which = key.partition(".")
        op = registry.OPS[own][which]
        if op.out_form:
            yield from _of(op, "out")


def _of(op: Op, form: str) -> Iterator[OpOverload]:
    yield arrivals.overload_of(op, form)
    choice = arrivals.NUMBER.get(f"{op.name}.{op.overload}")
    if choice is not None:
        yield arrivals.overload_of(op, form, choice[1])


def _names() -> dict[str, list[str]]:
    """PyTorch's name → the declarations behind it."""
    count = sum(map(len, registry.OPS.values()))
    if _NAMES.get("", [""])[0] != str(count):
        _NAMES.clear()
        for name, declared in registry.OPS.items():
            for which in declared:
                key = f"{name}.{which}"
                theirs = arrivals.RENAMED.get(key, key).partition(".")[0]
                for n in dict.fromkeys((theirs, name)):
                    _NAMES.setdefault(n, []).append(key)
        _NAMES[""] = [str(count)]
    return _NAMES


_NAMES: dict[str, list[str]] = {}


def _find(namespace: str, name: str) -> OpOverloadPacket:
    return getattr(getattr(ops, namespace), name)


overload.finder.append(_find)


class Ops:
    """`torchlab.ops`."""

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        space = self.__dict__[name] = OpNamespace(name)
        return space

    def __dir__(self) -> list[str]:
        return ["aten", *sorted(CUSTOM)]

    def __repr__(self) -> str:
        return "<torchlab.ops>"


ops = Ops()

__all__ = ["CUSTOM", "OpNamespace", "OpOverload", "OpOverloadPacket", "Ops", "ops"]
