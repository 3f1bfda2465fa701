"""Storages: who shares memory with whom, and the old constructors over them."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest

import torchlab as torch


def test_views_share_one_storage_object() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    storage = x.untyped_storage()
    assert storage is x[1].untyped_storage()
    assert storage == x.t().untyped_storage() != x.clone().untyped_storage()
    assert (storage.nbytes(), storage.data_ptr()) == (24, x.data_ptr())


def test_writes_go_both_ways_and_are_not_counted() -> None:
    """The version counts what tensors do; PyTorch's storages do not touch it."""
    x = torch.zeros(3)
    storage = torch.TypedStorage(wrap_storage=x.untyped_storage(), dtype=torch.float32)
    version = x._version
    storage[1] = 5
    assert x.tolist() == [0, 5, 0]
    assert x._version == version
    x[2] = 7
    assert storage.tolist() == [0, 5, 7]


def test_resize_keeps_the_first_bytes_and_the_tensors_follow() -> None:
    x = torch.arange(4.0)
    view = x[1:3]
    storage = x.untyped_storage()
    storage.resize_(32)
    storage.fill_(0)
    assert x.tolist() == [0] * 4
    x[1] = 3
    assert view.tolist() == [3, 0]
    storage.resize_(0)
    assert storage.nbytes() == 0 == x.untyped_storage().nbytes()


def test_typed_storages_know_their_class() -> None:
    storage = torch.FloatStorage([1, 2])
    assert isinstance(storage, torch.FloatStorage)
    assert not isinstance(storage, torch.DoubleStorage)
    assert isinstance(storage, torch.TypedStorage)
    assert storage.double().type() == "torch.DoubleStorage"
    assert torch.ones(2, dtype=torch.int64).storage_type() is torch.LongStorage
    assert torch.is_storage(storage) and not torch.is_storage(torch.FloatStorage)


def test_copies_and_pickles() -> None:
    storage = torch.LongStorage([1, 2, 3])
    for other in (copy.copy(storage), copy.deepcopy(storage), pickle.loads(pickle.dumps(storage))):
        assert other.tolist() == [1, 2, 3]
        other[0] = 9
    assert storage.tolist() == [1, 2, 3]


def test_buffers_in_both_byte_orders() -> None:
    assert torch.FloatStorage.from_buffer(b"\0\0\x80?", "little").tolist() == [1.0]
    assert torch.FloatStorage.from_buffer(b"?\x80\0\0", "big").tolist() == [1.0]
    with pytest.raises(ValueError, match="elements"):
        torch.FloatStorage.from_buffer(b"1234", "little", 2)


def test_meta_storages_have_a_length_but_no_bytes() -> None:
    storage = torch.empty(3, device="meta").untyped_storage()
    assert storage.nbytes() == 12
    with pytest.raises(NotImplementedError, match="meta"):
        storage.tolist()


def test_the_wrong_type_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Storage of type Float"):
        torch.tensor([]).set_(torch.DoubleStorage([1]))
    with pytest.raises(RuntimeError, match="Storage of type Float"):
        torch.FloatTensor(torch.DoubleStorage([1]))
    assert torch.FloatTensor(torch.FloatStorage([1, 2])).tolist() == [1, 2]


def test_legacy_classes_are_types_of_tensors_not_classes_of_them() -> None:
    x = torch.ones(2)
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
    assert not issubclass(torch.FloatTensor, torch.Tensor)
    assert torch.LongTensor([1.7]).tolist() == [1]
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.FloatTensor(x).data_ptr() == x.data_ptr()
    assert x.type(torch.LongTensor).dtype is torch.int64
    assert x.type("torch.DoubleTensor").dtype is torch.float64
    for wrong in ("DoubleTensor", "torch.spars.FloatTensor", "torch.FooTensor", int):
        with pytest.raises(ValueError, match="invalid type"):
            x.type(wrong)
    with pytest.raises(TypeError, match="convert it"):
        torch.FloatTensor(x.int())


def test_old_classes_of_sparse_tensors() -> None:
    of = torch.sparse.FloatTensor
    i, v = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    x = of(i, v, torch.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert of(i, v).shape == (2, 2) and of(i, v, (3, 3)).shape == (3, 3)
    assert of(i, v.double()).dtype is torch.float64  # the values' own
    assert of().shape == (0,) and of()._indices().shape == (1, 0)
    assert of(2, 3)._nnz() == 0 and of(torch.Size([2, 3])).shape == (2, 3)
    assert torch.sparse.LongTensor(i, v.long()).dtype is torch.int64
    assert isinstance(x, of) and not isinstance(x, torch.FloatTensor)
    assert not isinstance(v, of) and not isinstance(x, torch.sparse.DoubleTensor)
    assert of.layout is torch.sparse_coo and of.is_sparse and not torch.FloatTensor.is_sparse
    assert x.type() == "torch.sparse.FloatTensor"
    for wanted in ("torch.sparse.DoubleTensor", torch.sparse.DoubleTensor):
        assert x.type(wanted).dtype is torch.float64 and x.type(wanted).is_sparse
        assert v.type(wanted).dtype is torch.float64 and not v.type(wanted).is_sparse
    assert x.type("torch.DoubleTensor").is_sparse
    assert v.type(of).layout is torch.strided
    assert x.new(i, v, (4, 4)).shape == (4, 4) and x.new().shape == (0,)
    with pytest.raises(TypeError, match="only accepts sizes"):
        of((2, 3))
    for wrong in ((i,), ([[0, 1]], [1.0, 2.0]), (x,), (i, v, 2, 3)):
        with pytest.raises(TypeError, match="invalid combination of arguments|positional"):
            of(*wrong)
    assert "DoubleTensor" in dir(torch.sparse) and not hasattr(torch.sparse, "BoolTensor")


def test_files_are_mapped(tmp_path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    private = torch.UntypedStorage.from_file(str(path), False, 16)
    assert private.tolist() == list(range(16))
    assert (private.nbytes(), private.filename, private.device) == (16, None, torch.device("cpu"))
    private[0] = 99
    assert path.read_bytes()[0] == 0
    shared = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=4)
    shared[0] = 98
    assert path.read_bytes()[0] == 98
    assert shared.filename == str(path)
    x = torch.tensor([], dtype=torch.int32).set_(shared)
    assert x.tolist() == [0x03020162]
    x += 1
    assert path.read_bytes()[0] == 99
    assert torch.IntStorage.from_file(str(path), False, 2).tolist() == [0x03020163, 0x07060504]
    torch.UntypedStorage.from_file(str(path), True, 32)
    assert len(path.read_bytes()) == 32
    assert torch.UntypedStorage.from_file(str(path)).nbytes() == 0
    with pytest.raises(RuntimeError, match="size <32> is smaller than the required mapping size"):
        torch.UntypedStorage.from_file(str(path), False, 33)
    with pytest.raises(TypeError, match="from_file"):
        torch.UntypedStorage.from_file(3, False, 0)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="derived classes"):
        torch.TypedStorage.from_file(str(path), False, 2)


def test_what_tells_tensors_apart() -> None:
    x = torch.ones(2)
    assert x._cdata == x._cdata != x.detach()._cdata
    assert x.untyped_storage()._cdata == x.detach().untyped_storage()._cdata


def test_their_size_has_the_memory_in_it() -> None:
    full, empty = torch.ones(10).untyped_storage(), torch.ones(0).untyped_storage()
    assert sys.getsizeof(full) - sys.getsizeof(empty) == 40
    full, empty = (torch.TypedStorage(n, dtype=torch.float32) for n in (10, 0))
    assert sys.getsizeof(full) - sys.getsizeof(empty) == 40
