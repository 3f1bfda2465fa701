"""Storages: who shares memory with whom, and the old constructors over them."""

from __future__ import annotations

import copy
import pickle

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
    for wrong in ("DoubleTensor", "torch.sparse.FloatTensor", "torch.FooTensor", int):
        with pytest.raises(ValueError, match="invalid type"):
            x.type(wrong)
    with pytest.raises(TypeError, match="convert it"):
        torch.FloatTensor(x.int())
