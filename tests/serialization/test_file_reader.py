"""torchlab.PyTorchFileReader."""

from __future__ import annotations

import io

import pytest

import torchlab as torch
from torchlab import _C


@pytest.fixture(params=["path", "stream"])
def reader(request, tmp_path):
    data = io.BytesIO()
    torch.save({"a": torch.arange(3.0), "b": torch.empty(0)}, data)
    if request.param == "path":
        path = tmp_path / "a.pt"
        path.write_bytes(data.getvalue())
        return torch.PyTorchFileReader(str(path))
    return torch.PyTorchFileReader(io.BytesIO(data.getvalue()))


def test_records(reader) -> None:
    assert _C.PyTorchFileReader is torch.PyTorchFileReader
    assert {"data.pkl", "data/0", "version", "byteorder"} <= set(reader.get_all_records())
    assert reader.get_record("version") == b"3\n" and reader.get_record_size("version") == 2
    assert reader.has_record("data/0") and not reader.has_record("nope")
    assert reader.get_record_offset("data/0") % 64 == 0
    assert reader.serialization_id().isdigit()
    with pytest.raises(RuntimeError, match="failed locating file nope: file not found"):
        reader.get_record("nope")


def test_storages(reader) -> None:
    assert reader.get_storage_from_record("data/0", 3, torch.float32).tolist() == [0, 1, 2]
    raw = reader.get_storage_from_record("data/0", 12, torch.UntypedStorage)
    assert raw.dtype == torch.uint8 and raw.tolist() == [0] * 6 + [128, 63, 0, 0, 0, 64]
    assert reader.get_storage_from_record("data/1", 0, torch.float64).shape == (0,)
    with pytest.raises(RuntimeError, match=r"record size \(12 bytes\) does not match.*4 elements"):
        reader.get_storage_from_record("data/0", 4, torch.float32)


def test_what_is_no_archive() -> None:
    with pytest.raises(RuntimeError, match="errno 2 on fopen: No such file.*/nonexist"):
        torch.PyTorchFileReader("/nonexist")
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        torch.PyTorchFileReader(io.BytesIO(b"abc" * 99))
    with pytest.raises(AttributeError, match="'int' object has no attribute 'tell'"):
        torch.PyTorchFileReader(3)
