"""Arguments that modules hand on to the functions that make their parameters."""

from __future__ import annotations

from typing import Any


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Those of device, dtype and memory_format that are in `kwargs`, or in its entry
    "factory_kwargs". Raises TypeError for other names, and for one that is given twice.

    Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.factory_kwargs.html
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    expected = known | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in known & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


__all__ = ["factory_kwargs"]
