"""`torchlab.return_types`: the classes of what operators with several results give.

    values, indices = x.max(0)
    type(x.max(0)) is torchlab.return_types.max

A class takes one sequence of its fields. `max_out` and its like are what a call with `out=` gives.
Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.generate.calls import return_type
from torchlab._core.dispatch.registry import OPS
from torchlab._core.structures import register, structure, with_out

_ALONE = {"histogram": ("hist", "bin_edges"), "histogramdd": ("hist", "bin_edges")}  # of a face
_WITHOUT_OUT = ("histogramdd",)
_NAMES = (
    *("aminmax", "cummax", "cummin", "frexp", "geqrf", "kthvalue", "max", "median", "min", "mode"),
    *("nanmedian", "sort", "topk", "lu_unpack", "triangular_solve", "qr", "slogdet", "svd"),
    *("linalg_cholesky_ex", "linalg_eig", "linalg_eigh", "linalg_inv_ex", "linalg_ldl_factor"),
    *("linalg_ldl_factor_ex", "linalg_lstsq", "linalg_lu", "linalg_lu_factor"),
    *("linalg_lu_factor_ex", "linalg_qr", "linalg_slogdet", "linalg_solve_ex", "linalg_svd"),
    *_ALONE,
)
_EVERY = sorted({*_NAMES, *(f"{n}_out" for n in _NAMES if n not in _WITHOUT_OUT)})

__all__ = [*_EVERY, "pytree_register_structseq"]


def pytree_register_structseq(cls: Any) -> None:
    """Let `torchlab.utils._pytree` go into the instances of such a class. Those of this module are
    known to it already."""
    register(cls)


def _find(name: str) -> Any:
    base = name.removesuffix("_out")
    if base in _ALONE:
        cls = structure(base, _ALONE[base])
    else:
        several = (o for o in OPS[base].values() if len(o.schema.returns) > 1)
        cls = return_type(next(several))
    return cls if base == name else with_out(cls)


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        found: Any = [_find(n) for n in _EVERY]
    elif name in _EVERY:
        found = _find(name)
    else:
        raise AttributeError(f"module 'torchlab.return_types' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "all_return_types"]
