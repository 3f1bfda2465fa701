"""What a sparse tensor is to Python: its components, its text, copies and pickles; writes in place.

Source: https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

from torchlab._core import dtype as dt
from torchlab._core import printing
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._sparse import (
    BSC,
    BSR,
    COO,
    CSC,
    CSR,
    NAMES,
    Compressed,
    Coo,
    Sparse,
    SparseCompressed,
    SparseCoo,
    around,
    bare,
    coalesced,
    dense,
    values_of,
)
from torchlab._core.tape import AccumulateGrad, Out, edge_of
from torchlab._core.tensor import Tensor


def _layout(t: Any) -> str:
    return NAMES[t._a.layout] if isinstance(t, Sparse) else "Strided"


def _only(name: str, wanted: str, t: Any) -> NoReturn:
    raise RuntimeError(f"{name} expected {wanted} layout but got {_layout(t)}")


def _coo(name: str, t: Any) -> Coo:
    if not isinstance(t, SparseCoo):
        _only(name, "sparse coordinate tensor", t)
    return t._a


def _coo_backend(name: str, t: Any) -> Coo:
    if not isinstance(t, SparseCoo):
        backend = t.backend if isinstance(t, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{backend}' backend; it is there"
            " for tensors of layout torch.sparse_coo"
        )
    return t._a


@face("values", spaces=())
def values(self: Any) -> Any:
    """The specified elements: (nnz, *dense dims), in the order of the indices."""
    if not isinstance(self, Sparse):
        _only("values", "sparse tensor", self)
    if self._a.layout is COO and not self._a.coalesced:
        raise RuntimeError(
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
        )
    return values_of(self)


@face("indices", spaces=())
def indices(self: Any) -> Any:
    """(sparse dims, nnz): where the elements are."""
    p = _coo("indices", self)
    if not p.coalesced:
        raise RuntimeError(
            "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
        )
    return bare(p.indices)


@face("_indices", spaces=())
def _indices(self: Any) -> Any:
    """The indices as they are, coalesced or not."""
    return bare(_coo_backend("_indices", self).indices)


@face("_values", spaces=())
def _values(self: Any) -> Any:
    """The values as they are, coalesced or not, without history."""
    return bare(_coo_backend("_values", self).values)


@face("_nnz", spaces=())
def _nnz(self: Any) -> int:
    """How many elements (of BSR and BSC: blocks) are specified."""
    return self._a.nnz if isinstance(self, SparseCompressed) else _coo_backend("_nnz", self).nnz


@face("coalesce", spaces=())
def coalesce(self: Any) -> Any:
    """Sorted, each index once, the values of equal ones added; itself if it is so."""
    _coo("coalesce", self)
    return coalesced(self)


@face("is_coalesced", spaces=())
def is_coalesced(self: Any) -> bool:
    """Whether each index comes once, in order."""
    return _coo("is_coalesced", self).coalesced


@face("_coalesced_", spaces=())
def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Say that the indices are sorted and distinct (or not)."""
    p = _coo_backend("_coalesced_", self)
    self._a = Coo(p.shape, p.indices, p.values, coalesced)
    return self


@face("sparse_dim", spaces=())
def sparse_dim(self: Any) -> int:
    """How many dims the indices tell; 0 for strided tensors."""
    if not isinstance(self, Sparse):
        return 0
    return self._a.sparse_dim if type(self._a) is Coo else 2


@face("dense_dim", spaces=())
def dense_dim(self: Any) -> int:
    """How many dims are in the values; all for strided tensors."""
    if not isinstance(self, Sparse):
        return self._a.ndim
    p = self._a
    return len(p.shape) - p.sparse_dim if type(p) is Coo else p.dense_dim


def _component(name: str, layouts: Any, kind: str, slot: str) -> None:
    def method(self: Any) -> Any:
        if not isinstance(self, SparseCompressed) or self._a.layout not in layouts:
            _only(name, f"sparse {kind} compressed tensor", self)
        return bare(getattr(self._a, slot))

    method.__doc__ = f"The {slot} indices of layouts {' and '.join(map(repr, layouts))}."
    face(name, spaces=())(method)


_component("crow_indices", (CSR, BSR), "row", "compressed")
_component("col_indices", (CSR, BSR), "row", "plain")
_component("ccol_indices", (CSC, BSC), "column", "compressed")
_component("row_indices", (CSC, BSC), "column", "plain")


# ---- what strided tensors have and these have not -----------------------------------------------


def _no_strides(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        layout = repr(self._a.layout).removeprefix("torch.sparse_").upper()
        raise RuntimeError(f"Sparse {layout} tensors do not have {name}")

    return method


def _no_pointer(self: Any) -> Any:
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def _no_storage(self: Any) -> Any:
    kind = "Sparse" if isinstance(self, SparseCoo) else "SparseCsr"
    raise NotImplementedError(f"Cannot access storage of {kind}TensorImpl")


def _no_numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(
        f"can't convert {_layout(self)} layout tensor to numpy. Use Tensor.to_dense() first."
    )


def _no_assignment(self: Any, index: Any, value: Any) -> None:
    raise TypeError("Cannot assign to a sparse tensor")


def _nbytes(self: Any) -> int:
    if isinstance(self, SparseCoo):
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent"
            " tensors, add the nbytes of the indices and values.  If you want the size of the "
            " equivalent dense tensor, multiply numel() by element_size()"
        )
    return self._a.size * self._k.itemsize


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is not None:
        return Tensor.type(self, dtype, non_blocking)  # type: ignore[attr-defined]
    if not isinstance(self, SparseCoo):
        raise RuntimeError("Unimplemented backend SparseCsrCPU")
    return f"torch.sparse.{self._k.dtype.scalar_name}Tensor"


def _item(self: Any) -> Any:
    if self._a.size != 1:
        raise RuntimeError(f"a Tensor with {self._a.size} elements cannot be converted to Scalar")
    return dense(aten.detach(self)).item()


def _data(self: Any) -> Any:
    return around(self._a)


def _set_data(self: Any, value: Any) -> None:
    if type(value) is not type(self):
        raise RuntimeError(
            "set_data: the new data must have the layout of the old,"
            f" {self.layout}, not {value.layout}"
        )
    self._a, self._k = value._a, value._k


def _wanted_grad(self: Any) -> bool:
    e = edge_of(self)
    if e is not None and type(e) is not AccumulateGrad:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"
            " protocol and pickling; use tensor.detach().clone() to copy the values."
        )
    return e is not None


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    wanted = _wanted_grad(self)
    r = memo[id(self)] = aten.clone(aten.detach(self))
    if self._g is not None:
        r._g = copy.deepcopy(self._g, memo)
    r.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return r.requires_grad_() if wanted else r


def rebuild(parts: Any, layout: Any, shape: Any, coalesced: bool, grad: bool, rest: Any) -> Any:
    """Make a sparse tensor from what `__reduce_ex__` gave."""
    first, second = parts[0], parts[-1]
    p = (
        Coo(shape, first, second, coalesced)
        if layout is COO
        else Compressed(layout, shape, first, parts[1], second)
    )
    r = around(p)
    r.__dict__.update(rest)
    return r.requires_grad_() if grad else r


def _reduce(self: Any, protocol: Any) -> Any:
    p = self._a
    parts = (p.indices, p.values) if type(p) is Coo else (p.compressed, p.plain, p.values)
    flag = type(p) is Coo and p.coalesced
    arguments = (parts, p.layout, p.shape, flag, _wanted_grad(self), dict(self.__dict__))
    return rebuild, arguments


def _body(t: Tensor, opening: str) -> str:
    """One component as it stands in the text; its dtype is said for the whole tensor."""
    if not t._a.size:
        return f"{opening}tensor([], size={tuple(t._a.shape)})"
    name = "torch.float32"
    return printing.format_tensor(
        t._a, dtype_name=name, default_dtype=name, prefix=f"{opening}tensor"
    )


def _repr(self: Any, *, tensor_contents: Any = None) -> str:
    p = self._a
    options = printing.get_printoptions()
    default = str(dt.get_default_dtype())
    suffixes = [f"size={tuple(p.shape)}", f"nnz={p.nnz}"]
    if str(self._k.dtype) not in printing._silent_dtypes(default):
        suffixes.append(f"dtype={self._k.dtype}")
    suffixes.append(f"layout={p.layout}")
    e = edge_of(self)
    if type(e) is AccumulateGrad:
        suffixes.append("requires_grad=True")
    elif e is not None:
        suffixes.append(f"grad_fn=<{(e.node if type(e) is Out else e).name()}>")
    if type(p) is Coo:
        parts = [("tensor(indices=", p.indices), ("       values=", p.values)]
    else:
        names = ("crow", "col") if p.by_rows else ("ccol", "row")
        parts = [
            (f"tensor({names[0]}_indices=", p.compressed),
            (f"       {names[1]}_indices=", p.plain),
            ("       values=", p.values),
        ]
    text = ",\n".join(_body(t, opening) for opening, t in parts)
    if type(p) is Coo:
        text += f",\n       {suffixes.pop(0)}"
    text = printing._with_suffixes(text, suffixes, 7, options["linewidth"])
    return f"Parameter containing:\n{text}" if self._is_param else text


def _contiguous(self: Any, memory_format: Any = None) -> bool:
    if isinstance(self, SparseCoo):
        return False
    return _no_strides("is_contiguous")(self)


def _stride(self: Any, dim: int | None = None) -> Any:
    if isinstance(self, SparseCoo):
        return (0,) * self._a.ndim if dim is None else 0
    return _no_strides("strides")(self)


def _install(cls: Any) -> None:
    cls.__repr__ = cls.__str__ = _repr
    cls.__deepcopy__ = _deepcopy
    cls.__reduce_ex__ = _reduce
    cls.__setitem__ = _no_assignment
    cls.is_contiguous = _contiguous
    cls.stride = _stride
    cls.storage_offset = lambda self: 0
    cls.data_ptr = cls.tolist = _no_pointer
    cls.untyped_storage = cls.storage = _no_storage
    cls.numpy = cls.__array__ = _no_numpy
    cls.nbytes = property(_nbytes)
    cls.type = _type
    cls.item = _item
    cls.__bool__ = lambda self: bool(dense(around(self._a)))
    cls.__float__ = lambda self: float(self.item())
    cls.__int__ = lambda self: int(self.item())
    cls.__complex__ = lambda self: complex(self.item())
    cls.__index__ = lambda self: dense(around(self._a)).__index__()
    cls.data = property(_data, _set_data)
    cls._version = property(lambda self: self._a.values._version)


_install(Sparse)
