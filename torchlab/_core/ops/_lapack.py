"""What the matrix factorisations share: checks of their input, column-major results, and LAPACK
called once per matrix of a batch.

NumPy's own routines loop over a batch in C; where NumPy lacks a routine, SciPy's is called for each
matrix. SciPy works in host memory: on other devices the matrices go there and back.

Source of the semantics: https://docs.pytorch.org/docs/2.13/linalg.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchlab._core import layout, settings
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import registry
from torchlab._core.dispatch.generate.calls import return_type
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.errors import LinAlgError
from torchlab._core.ops._reduce import scalar_name
from torchlab._core.tape import NOGRAD, TLS

INT32 = np.dtype(np.int32)
LINALG = ("linalg",)
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


# ---- checks -------------------------------------------------------------------------------------


def check_matrix(name: str, a: Any, kernel: str = "", *, integers: bool = False) -> None:
    """A matrix or a batch of them, of a type that LAPACK knows. `kernel` is the name of PyTorch's
    kernel in the message about other types; `integers` refuses integers by that name too."""
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    check_type(name, a, kernel, integers=integers)


def check_type(name: str, a: Any, kernel: str = "", *, integers: bool = False) -> None:
    if a.dtype.kind in "iub" and not integers:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(a)}"
        )
    if a.dtype.char not in _PREFIX:
        raise NotImplementedError(
            f"\"{kernel or name}\" not implemented for '{scalar_name(a)}'; convert the matrices"
            " to float32 or float64"
        )


def check_square(
    name: str, a: Any, kernel: str = "", what: str = "A", *, integers: bool = False
) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: {what} must be batches of square matrices, but they are {a.shape[-2]} by"
            f" {a.shape[-1]} matrices"
        )
    check_type(name, a, kernel, integers=integers)


def raise_first(
    infos: Any, message: Callable[[int], str], name: str, error: type[RuntimeError] = LinAlgError
) -> None:
    """The error for the first matrix whose `info` is not zero."""
    infos = np.asarray(infos)
    if not infos.any():
        return
    at = int(np.flatnonzero(infos.reshape(-1))[0])
    batch = f"(Batch element {at}): " if infos.ndim else ""
    raise error(f"{name}: {batch}{message(int(infos.reshape(-1)[at]))}")


# ---- column-major memory ------------------------------------------------------------------------


def column_strides(shape: Any) -> tuple[int, ...]:
    """Strides of matrices that lie column by column, the batch row-major."""
    *batch, m, n = shape
    *outer, column, row = layout.contiguous_strides((*batch, n, m))
    return (*outer, row, column)


def column_meta(shape: Any, dtype: Any) -> MetaArray:
    return MetaArray(shape, np.dtype(dtype), column_strides(shape))


def column_empty(xp: Any, shape: Any, dtype: Any) -> Any:
    *batch, m, n = shape
    return xp.empty((*batch, n, m), dtype).swapaxes(-1, -2)


def column_major(xp: Any, a: Any, dtype: Any = None) -> Any:
    """A copy in column-major order."""
    made = column_empty(xp, a.shape, dtype or a.dtype)
    made[...] = a
    return made


# ---- one matrix after the other ------------------------------------------------------------------


def routine(lapack: Any, name: str, dtype: Any) -> Any:
    """LAPACK's `name` for elements of `dtype`: spotrf for potrf and float32."""
    return getattr(lapack, _PREFIX[np.dtype(dtype).char] + name)


def each(shape: Any) -> Iterator[tuple[int, ...]]:
    """The indices of all matrices of a batch of this shape."""
    return np.ndindex(*shape)


def in_single(xp: Any, a: Any) -> bool:
    """Whether NumPy, which works in double precision alone, is to be passed by: another precision
    can give eigenvalues in another order and vectors with other signs than PyTorch's."""
    return xp is np and a.dtype.char in "fF"


def host(xp: Any, *arrays: Any) -> Any:
    """The arrays in host memory."""
    moved = arrays if xp is np else tuple(xp.asnumpy(a) for a in arrays)
    return moved if len(moved) > 1 else moved[0]


def device(xp: Any, *arrays: Any) -> Any:
    """The reverse of `host`; keeps the order in memory."""
    moved = arrays if xp is np else tuple(xp.asarray(a, order="A") for a in arrays)
    return moved if len(moved) > 1 else moved[0]


def batch_of(name: str, a: Any, b: Any) -> tuple[int, ...]:
    """The batch dimensions of two operands, broadcast."""
    return tuple(layout.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]), op=name))


def deprecated(name: str, better: str, instead: str) -> None:
    """PyTorch's warning, once in a process, at the call of an older function."""
    settings.warn_once(
        f"deprecated {name}",
        f"torch.{name} is deprecated in favor of torch.linalg.{better} and will be removed in a"
        f" future PyTorch release.\nWrite {instead}",
    )


# ---- tensors ------------------------------------------------------------------------------------


def offer(*names: str) -> None:
    """Let `torchlab.linalg.<name>` be the operator `linalg_<name>`."""
    registry.FUNCTIONS.setdefault("linalg", set()).update(names)


def named(op: Any, results: Any) -> Any:
    """Several results as the named tuple of `op`."""
    return return_type(op)(*results)


def host_of(t: Any) -> Any:
    """A tensor's elements in host memory."""
    while t._level and hasattr(t, "value"):  # Note [Levels]: of the whole batch
        t = t.value
    if type(t._a) is MetaArray:
        raise NotImplementedError(
            "this operator looks at the elements: there is no rule for a tensor without data (of"
            " the meta device, or fake)"
        )
    return np.asarray(t.cpu()._a)


def no_data(t: Any) -> bool:
    return bool(t._k.device.type == "meta")


def mH(x: Any) -> Any:
    """The conjugate transpose of matrices."""
    t = aten.transpose(x, -2, -1)
    return aten.conj(t) if x._k.dtype.is_complex else t


def columns(v: Any) -> Any:
    """Vectors (…, n) as what scales the columns of matrices: (…, 1, n)."""
    return aten.unsqueeze(v, -2)


def rows(v: Any) -> Any:
    """Vectors (…, n) as what scales the rows of matrices: (…, n, 1)."""
    return aten.unsqueeze(v, -1)


def diag(x: Any) -> Any:
    return aten.diagonal(x, 0, -2, -1)


def differences(v: Any) -> Any:
    """E with E_ij = v_j − v_i, and 1 on the diagonal so that one can divide by it."""
    return columns(v) - rows(v) + aten.diag_embed(aten.ones_like(v))


def check_phase(name: str, imaginary: Any, what: str, term: str) -> None:
    """Complex vectors are free up to e^{iφ}: refuse the gradient of a function that depends on
    it."""
    if no_data(imaginary):
        return
    if not bool(aten.all(aten.abs(aten.detach(imaginary)) <= 1e-2)):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by"
            f" e^{{i phi}}. The specified loss function depends on this {term}"
        )


def wants_gradient(*tensors: Any) -> bool:
    """Whether a call with these tensors is going to be recorded, or is a transform's: whether what
    a wrapper holds wants gradients is not asked."""
    return any(t._level for t in tensors) or (
        (not NOGRAD or TLS.grad) and any(t.requires_grad for t in tensors)
    )


@vjp_helper
def no_derivative_for(what: str, g: Any) -> Any:
    """PyTorch has no formula for it either."""
    raise RuntimeError(f"derivative for {what} is not implemented")
