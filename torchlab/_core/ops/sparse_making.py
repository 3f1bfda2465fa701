"""New sparse tensors: from their components, or empty.

Source: https://docs.pytorch.org/docs/2.13/sparse.html#construction
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import formats
from torchlab._core.dispatch import exotic
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import strided
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import How, finish, sizes_of
from torchlab._core.ops._sparse import (
    BSC,
    BSR,
    COMPRESSED,
    COO,
    CSC,
    CSR,
    NAMES,
    Compressed,
    Coo,
    around,
    bare,
    check_place,
    put,
)
from torchlab._core.ops._sparse_checks import check_compressed, check_coo, wanted
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor


def _values(values: Any, dtype: Any, device: Any, what: str) -> Tensor:
    if device is not None and devices.as_device(device) is not devices.cpu:
        raise NotImplementedError(
            f"{what}: sparse tensors are there for the CPU only, not for {device}"
        )
    if not isinstance(values, Tensor):
        return aten.tensor(values, dtype=dtype)
    check_place(values, what)
    return values if dtype is None else aten.to(values, dtype)


def _index(index: Any, what: str) -> Tensor:
    if not isinstance(index, Tensor):
        index = aten.tensor(index)
        if not index._a.size:
            index = index.long()
    return index


def _finish(t: Any, requires_grad: bool) -> Any:
    return finish(t, requires_grad) if requires_grad or TLS.inference else t


_OPTIONS = ("dtype", "device", "requires_grad", "pin_memory")  # their layout says their name


@maker("sparse_coo_tensor", options=_OPTIONS)
def sparse_coo_tensor(
    how: How,
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """A COO tensor of indices (sparse dims, nnz) and values (nnz, *dense dims). Without `size` the
    smallest that holds the indices; `sparse_coo_tensor(size)` alone has no elements."""
    what = "sparse_coo_tensor"
    if values is None:
        size = indices if size is None else size
        if size is None:
            raise TypeError(f'{what}() missing 1 required positional arguments: "size"')
        shape = sizes_of((size if isinstance(size, int) else tuple(size),), what)
        return _finish(empty_coo(shape, how.dtype, how.device), how.grad)
    v = _values(values, how.dtype, how.device, what)
    index = _index(indices, what)
    a = index._a
    if a.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(a.shape)}")
    if v._a.ndim == 0:
        v = aten.expand(v, (a.shape[1],))
    if v._a.shape[0] != a.shape[1]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {a.shape[1]}, nnz"
            f" from values: {v._a.shape[0]}"
        )
    longs = bare(index) if index._k.dtype is dt.int64 else wrap(a.astype(np.int64))
    if how.pinned:
        longs, v = aten.pin_memory(longs), aten.pin_memory(v)
    if size is None:
        extents = [0] * a.shape[0]
        if a.size:
            for i, low in enumerate(longs._a.min(axis=1)):
                if low < 0:
                    raise RuntimeError(f"found negative index {low} for dim {i}")
            extents = [int(x) + 1 for x in longs._a.max(axis=1)]
        shape = (*extents, *v._a.shape[1:])
    else:
        shape = tuple(int(x) for x in size)
        sparse, rest = a.shape[0], v._a.shape[1:]
        if len(shape) != sparse + len(rest):
            raise RuntimeError(
                "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) ="
                f" {len(shape)}, sparse_dim = {sparse}, dense_dim = {len(rest)}"
            )
        if shape[sparse:] != rest:
            raise RuntimeError(
                f"values has incorrect size, expected {[a.shape[1], *shape[sparse:]]}, got"
                f" {list(v._a.shape)}"
            )
        sizes_of((shape,), what)
    flag = a.shape[1] < 2 if is_coalesced is None else bool(is_coalesced)
    p = Coo(shape, longs, bare(v), flag)
    if wanted(check_invariants):
        check_coo(p)
    return _finish(_built(p, v, how.grad), how.grad)


def _built(p: Any, v: Tensor, requires_grad: bool) -> Any:
    """A leaf if gradients are asked for, else with the values' history."""
    return around(p) if requires_grad else put(p, v)


def _compressed(
    how: How,
    layout: Any,
    compressed: Any,
    plain: Any,
    values: Any,
    size: Any,
    check_invariants: bool | None,
) -> Any:
    v = _values(values, how.dtype, how.device, how.name)
    c, q = bare(_index(compressed, how.name)), bare(_index(plain, how.name))
    if how.pinned:
        c, q, v = (aten.pin_memory(x) for x in (c, q, v))
    b = max(c._a.ndim - 1, 0)
    if size is None:
        block = 2 if layout in (BSR, BSC) else 0
        h, w = (int(x) for x in v._a.shape[b + 1 : b + 3]) if block else (1, 1)
        major = c._a.shape[-1] - 1
        minor = int(q._a.max()) + 1 if q._a.size else 0
        rows, cols = (major, minor) if layout in (CSR, BSR) else (minor, major)
        shape = (*c._a.shape[:-1], rows * h, cols * w, *v._a.shape[b + 1 + block :])
    else:
        shape = tuple(int(x) for x in size)
    p = Compressed(layout, shape, c, q, bare(v))
    if wanted(check_invariants):
        check_compressed(p)
    if p.compressed._k.dtype is not p.plain._k.dtype or p.plain._k.dtype not in (
        dt.int32,
        dt.int64,
    ):
        p = Compressed(
            layout, shape, wrap(c._a.astype(np.int64)), wrap(q._a.astype(np.int64)), bare(v)
        )
    made = _built(p, v, how.grad)
    made._a.shape = shape
    return _finish(made, how.grad)


@maker("sparse_compressed_tensor", options=_OPTIONS)
def sparse_compressed_tensor(
    how: How,
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    layout: Any = None,
    check_invariants: bool | None = None,
) -> Any:
    """A CSR, CSC, BSR or BSC tensor (`layout`) of its components."""
    if layout not in COMPRESSED:
        got = "none" if layout is None else _layout_name(how, layout)
        raise RuntimeError(f"{how.name} expected sparse compressed tensor layout but got {got}")
    return _compressed(
        how, layout, compressed_indices, plain_indices, values, size, check_invariants
    )


def _layout_name(how: How, layout: Any) -> str:
    if not isinstance(layout, formats.layout):
        raise TypeError(
            f"{how.name}(): argument 'layout' must be torch.layout, not {type(layout).__name__}"
        )
    return "Strided" if layout is strided else NAMES[layout]


def _check_layout(how: How, layout: Any, own: Any) -> None:
    if layout is not None and layout is not own:
        raise RuntimeError(
            f"{how.name}: layout must be {NAMES[own]} but got {_layout_name(how, layout)}"
        )


def _by_rows(own: Any, name: str) -> None:
    @maker(name, options=_OPTIONS)
    def make(
        how: How,
        crow_indices: Any,
        col_indices: Any,
        values: Any,
        size: Any = None,
        *,
        layout: Any = None,
        check_invariants: bool | None = None,
    ) -> Any:
        _check_layout(how, layout, own)
        return _compressed(how, own, crow_indices, col_indices, values, size, check_invariants)

    make.doc = f"A tensor of layout {own} of its components; `size` is found if not given."


def _by_columns(own: Any, name: str) -> None:
    @maker(name, options=_OPTIONS)
    def make(
        how: How,
        ccol_indices: Any,
        row_indices: Any,
        values: Any,
        size: Any = None,
        *,
        layout: Any = None,
        check_invariants: bool | None = None,
    ) -> Any:
        _check_layout(how, layout, own)
        return _compressed(how, own, ccol_indices, row_indices, values, size, check_invariants)

    make.doc = f"A tensor of layout {own} of its components; `size` is found if not given."


_by_rows(CSR, "sparse_csr_tensor")
_by_rows(BSR, "sparse_bsr_tensor")
_by_columns(CSC, "sparse_csc_tensor")
_by_columns(BSC, "sparse_bsc_tensor")


# ---- without elements ---------------------------------------------------------------------------


def empty_coo(
    shape: Any, dtype: Any = None, device: Any = None, sparse_dim: int | None = None
) -> Any:
    """A COO tensor without elements."""
    shape = tuple(shape)
    n = len(shape) if sparse_dim is None else sparse_dim
    v = _values(
        aten.empty((0, *shape[n:]), dtype=dtype or dt.get_default_dtype()), None, device, "empty"
    )
    return around(Coo(shape, wrap(np.empty((n, 0), np.int64)), v, True))


def empty_compressed(layout: Any, shape: Any, dtype: Any, what: str, like: Any = None) -> Any:
    """A compressed tensor without elements."""
    shape = tuple(shape)
    block: tuple[int, ...] = ()
    rest: tuple[int, ...] = ()
    b = len(shape) - 2
    if like is not None:
        block, b = (like.blocksize if like.blocks else ()), like.batch
        rest = shape[b + 2 :]
    elif layout in (BSR, BSC):
        raise RuntimeError(
            f"{what}_sparse_compressed expected sparse compressed (non-block) tensor layout but got"
            f" {NAMES[layout]}"
        )
    if b < 0:
        raise RuntimeError(
            f"torch.{what}: Only batched sparse compressed (non-block) tensors are supported, but"
            f" got size {list(shape)}"
        )
    major = shape[b] if layout in (CSR, BSR) else shape[b + 1]
    if block:
        major //= block[0] if layout is BSR else block[1]
    index = np.int64 if like is None else like.plain._a.dtype
    lead = shape[:b]
    return around(
        Compressed(
            layout,
            shape,
            wrap(np.zeros((*lead, major + 1), index)),
            wrap(np.zeros((*lead, 0), index)),
            aten.empty((*lead, 0, *block, *rest), dtype=dtype or dt.get_default_dtype()),
        )
    )


def _made(name: str, shape: Any, dtype: Any, device: Any, requires_grad: bool, layout: Any) -> Any:
    """`torch.zeros(2, 3, layout=torch.sparse_coo)`"""
    _values(0, None, device, name)
    if layout is COO:
        return _finish(empty_coo(shape, dtype, device), requires_grad)
    return _finish(empty_compressed(layout, shape, dtype, name), requires_grad)


for _layout in (COO, *COMPRESSED):
    exotic.LAYOUTS[_layout] = _made


@exotic.exotic("SparseCPU", "zeros_like", "empty_like", face=True)
@exotic.exotic("SparseCsrCPU", "zeros_like", "empty_like", face=True)
def zeros_like(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """Without elements, the size, dtype and layout of `self`; strided zeros if asked for."""
    p, dtype = self._a, dtype or self._k.dtype
    if layout is strided and type(p) is Coo:
        return aten.zeros(p.shape, dtype=dtype, device=device, requires_grad=requires_grad)
    if layout not in (None, p.layout):
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {NAMES[p.layout]}"
            f" but you requested {'Strided' if layout is strided else NAMES[layout]})"
        )
    if type(p) is Coo:
        r = empty_coo(p.shape, dtype, device, p.sparse_dim)
    else:
        r = empty_compressed(p.layout, p.shape, dtype, "zeros", p)
    return _finish(r, requires_grad)


@exotic.exotic("SparseCsrCPU", "ones_like", face=True)
def ones_like(self: Any, **options: Any) -> Any:
    """Ones at the places of `self`."""
    return full_like(self, 1, **options)


@exotic.exotic("SparseCsrCPU", "full_like", face=True)
def full_like(
    self: Any, fill_value: Any, *, requires_grad: bool = False, dtype: Any = None, **options: Any
) -> Any:
    """One value at the places of `self`."""
    v = aten.full_like(self._a.values, fill_value, dtype=dtype)
    return _finish(around(self._a.with_values(v)), requires_grad)


exotic.exotic("SparseCPU", "ones_like", face=True)(
    lambda self, **options: type(self).refuse("fill_.Scalar", False, [self])
)
exotic.exotic("SparseCPU", "full_like", face=True)(
    lambda self, fill_value, **options: type(self).refuse("fill_.Scalar", False, [self])
)


def _new(name: str) -> Any:
    def method(
        self: Any,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Any:
        """As the function of that name, with this tensor's type and layout by default."""
        if layout is strided:
            return getattr(aten, name)(
                *size, dtype=dtype or self.dtype, requires_grad=requires_grad
            )
        return _made(
            name, sizes_of(size, name), dtype or self.dtype, device, requires_grad,
            layout or self._a.layout,
        )  # fmt: skip

    return method


for _name in ("empty", "zeros"):
    for _backend in ("SparseCPU", "SparseCsrCPU"):
        exotic.exotic_method(_backend, f"new_{_name}")(_new(_name))


def _random_like(name: str, fill: str) -> None:
    def refuse(self: Any, *args: Any, **options: Any) -> Any:
        return type(self).refuse(fill, False, [self])

    for backend in ("SparseCPU", "SparseCsrCPU"):
        exotic.exotic(backend, name, face=True)(refuse)


for _name, _fill in (
    ("rand_like", "uniform_"),
    ("randn_like", "normal_"),
    ("randint_like", "random_"),
    ("equal", "equal"),
):
    _random_like(_name, _fill)
for _backend in ("SparseCPU", "SparseCsrCPU"):
    exotic.exotic_method(_backend, "equal")(
        lambda self, other: type(self).refuse("equal", False, [self])
    )
