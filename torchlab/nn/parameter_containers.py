"""ParameterList and ParameterDict: parameters in order or by name, registered.

Source: https://docs.pytorch.org/docs/2.13/nn.html#containers
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.nn.containers import pairs
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter, is_parameter


def _kept(value: Any) -> Any:
    """Tensors become parameters; anything else is kept as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not is_parameter(value) else value


def _described(value: Any, name: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.shape)
    place = "" if value.is_cpu else f" ({value.device})"
    kind = "Parameter" if is_parameter(value) else "Tensor"
    return f"{kind} containing: [{name} of size {size}{place}]"


class ParameterList(Module):
    """A list whose tensors are parameters; other values may be in it, too."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _key(self, idx: Any) -> str:
        idx = operator.index(idx)
        if not -self._size <= idx < self._size:
            raise IndexError(f"index {idx} is out of range")
        return str(idx % self._size)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__([self[i] for i in range(*idx.indices(self._size))])
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, value: Any) -> None:
        setattr(self, self._key(idx), _kept(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        lines = [
            f"  ({i}): {_described(v, str(getattr(v, 'dtype', '')))}" for i, v in enumerate(self)
        ]
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose tensors are parameters, in order of insertion."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, str(key))

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        self._keys[key] = None
        setattr(self, key, _kept(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        merged = ParameterDict(other)
        merged.update(self)
        return merged

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Another dict with the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`, entered as `default` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Forget everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take out the value of `key` and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take out the newest entry."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dict with the same value for each key."""
        return ParameterDict(dict.fromkeys(keys, default))

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(key, value) pairs."""
        return [(k, self[k]) for k in self._keys]

    def values(self) -> Iterable[Any]:
        """The values."""
        return [self[k] for k in self._keys]

    def update(self, parameters: Any) -> None:
        """Add values from a mapping (an OrderedDict or ParameterDict in its order, any other
        sorted by its keys) or from (key, value) pairs."""
        found = pairs(parameters, "ParametersDict")
        in_order = isinstance(parameters, (OrderedDict, ParameterDict))
        if isinstance(parameters, Mapping) and not in_order:
            found.sort(key=lambda pair: pair[0])
        for key, value in found:
            self[key] = value

    def extra_repr(self) -> str:
        lines = [
            f"  ({k}): {_described(v, v.type() if isinstance(v, Tensor) else '')}"
            for k, v in self.items()
        ]
        return "\n".join(lines)

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


__all__ = ["ParameterDict", "ParameterList"]
