"""Sequential, ModuleList and ModuleDict: modules in order or by name, registered.

Source: https://docs.pytorch.org/docs/2.13/nn.html#containers
"""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from torchlab.nn.module import Module, indented


class _Ordered(Module):
    """What Sequential and ModuleList share: children under "0", "1", … and a list's manners."""

    def _nth(self, i: Any) -> str:
        """The key of child number `i`; negative numbers count from the end."""
        i = operator.index(i)
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of range")
        return next(islice(self._modules, i % n, None))

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._nth(idx), module)

    def __delitem__(self, idx: Any) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._nth(idx)]
        self._renumber(m for k, m in self._modules.items() if k not in keys)

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take out module number `key` and return it."""
        module = self[key]  # type: ignore[index]
        del self[key]
        return module


class Container(Module):
    """The old base class of containers: `Container(name=module, …)`."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in "
            "nn.Module. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(_Ordered):
    """Modules called one after the other: `Sequential(a, b)` or `Sequential(OrderedDict(...))`."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """The last module's result."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._nth(idx)]

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        for module in list(other):
            self.append(module)
        return self

    def _factor(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        for module in list(self) * (self._factor(other) - 1):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before number `index`; IndexError if there is no such place."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index % n if index < 0 else index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(_Ordered):
    """A list of modules; calling them is up to you."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._nth(idx)]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before number `index`, as `list.insert`."""
        modules = list(self)
        modules.insert(index, module)
        self.add_module(str(len(self)), module)  # checks its type
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Equal neighbours are shown once: `(0-2): 3 x Linear(...)`."""
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            indented(f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}", 2)
            for a, b, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Forget all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take out the module `key` and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from (name, module) pairs."""
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module


def pairs(source: Any, what: str) -> list[tuple[str, Any]]:
    """(key, value) pairs of a mapping or of an iterable of pairs; TypeError or ValueError if it
    is none."""
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{what}.update should be called with an iterable of key/value pairs, but got "
            f"{type(source).__name__}"
        )
    if isinstance(source, Mapping) or hasattr(source, "items"):
        return list(source.items())  # type: ignore[union-attr]
    found = []
    for i, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{what} update sequence element #{i} should be Iterable; is{type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{what} update sequence element #{i} has length {len(pair)}; 2 is required"
            )
        found.append(pair)
    return found


__all__ = ["Container", "ModuleDict", "ModuleList", "Sequential"]
