"""`torchlab.ops`: every operator overload by its name, `torchlab.ops.aten.add.Tensor`.

An overload is the declaration itself (`torchlab._core.dispatch.op.Op`), so what a dispatch mode is
given and what this name space gives are one object. In-place and out= forms, which PyTorch lists as
operators of their own (`add_.Tensor`, `add.out`), are small objects that lead to the declaration.

Source: https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.op import Op

CUSTOM: dict[str, dict[str, dict[str, Op]]] = {}  # "mylib" → "sin" → {"default": Op}


class Form:
    """The in-place or out= form of a declaration as an overload of its own."""

    __slots__ = ("op", "kind", "overload")

    def __init__(self, op: Op, kind: str, overload: str) -> None:
        self.op = op
        self.kind = kind
        self.overload = overload

    @property
    def name(self) -> str:
        """The name without its overload: `add_` in place, `add` with out=."""
        return self.op.name + ("_" if self.kind == "inplace" else "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.kind == "out":
            return self.op.function(*args, **kwargs)
        return self.op.inplace(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.op.namespace}.{self.name}.{self.overload}"

    def __repr__(self) -> str:
        return f"<torchlab op {str(self).replace('.', '::', 1)} ({self.kind} of {self.op})>"


class OpOverloadPacket:
    """All overloads of one name. Calling it picks the overload as PyTorch's public name does."""

    def __init__(self, namespace: str, name: str, found: dict[str, Any], face: Any) -> None:
        self._namespace = namespace
        self.__name__ = name
        self._found = found
        self._face = face

    def overloads(self) -> list[str]:
        """The names of the overloads, in the order of declaration."""
        return list(self._found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._face is not None:
            return self._face(*args, **kwargs)
        return next(iter(self._found.values()))(*args, **kwargs)

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

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found, face = _overloads(self.__name__, name)
        if not found:
            raise AttributeError(
                f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'"
            )
        packet = OpOverloadPacket(self.__name__, name, found, face)
        if self.__name__ == "aten":  # custom operators may be defined anew
            self.__dict__[name] = packet
        return packet

    def __dir__(self) -> list[str]:
        table = registry.OPS if self.__name__ == "aten" else CUSTOM.get(self.__name__, {})
        return sorted(table)

    def __repr__(self) -> str:
        return f"<OpNamespace '{self.__name__}'>"


def _overloads(namespace: str, name: str) -> tuple[dict[str, Any], Any]:
    """The overloads of a name, and what a call without an overload runs (None: the first)."""
    if namespace != "aten":
        return CUSTOM.get(namespace, {}).get(name, {}), None
    declared = registry.OPS.get(name)
    if declared is not None:
        found: dict[str, Any] = dict(declared)
        for overload, op in declared.items():
            if op.out_form:
                out = (
                    "out"
                    if len(declared) == 1 or overload in ("default", "Tensor")
                    else f"{overload}_out"
                )
                found.setdefault(out, Form(op, "out", out))
        return found, registry.aten.__getattr__(name) if name in registry.FACES else None
    declared = registry.OPS.get(name[:-1], {}) if name.endswith("_") else {}
    inplace = {o: Form(op, "inplace", o) for o, op in declared.items() if op.inplace_form}
    return inplace, None


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

__all__ = ["CUSTOM", "Form", "OpNamespace", "OpOverloadPacket", "Ops", "ops"]
