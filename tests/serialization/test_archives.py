"""Archives that are cut off, too large, doubled, from elsewhere: PyTorch's errors, small memory."""

from __future__ import annotations

import io
import pickle
import random
import struct
import tarfile
import zipfile
import zlib

import pytest

import torchlab as torch
from tests.serialization.tools import packed, parts, saved

OPTIONS = [{}, {"weights_only": False}]


@pytest.fixture(params=["memory", "file", "mmap"])
def load(request, tmp_path):
    def run(data, **options):
        raw = data.getvalue() if isinstance(data, io.BytesIO) else data
        if request.param == "memory":
            return torch.load(io.BytesIO(raw), **options)
        path = tmp_path / "x.pt"
        path.write_bytes(raw)
        if request.param == "mmap":
            options["mmap"] = True
        return torch.load(path, **options)

    return run


def records():
    return parts(saved(torch.tensor([1.0, 2.0])))


def test_every_cut_is_found(load):
    data = saved({"a": torch.ones(3), "b": torch.zeros(2)})
    for n in (*range(4, len(data), 61), len(data) - 1):
        with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
            load(data[:n])


@pytest.mark.parametrize("options", OPTIONS)
def test_every_cut_of_the_old_format_is_found(options):
    data = saved({"a": torch.ones(3), "b": torch.zeros(2)}, _use_new_zipfile_serialization=False)
    for n in range(0, len(data), 7):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(data[:n]), **options)


def test_noise_raises_and_nothing_else():
    rng = random.Random(0)
    for old in (False, True):
        whole = saved(
            {"a": torch.ones(3), "b": [1, "x", 2.5]}, _use_new_zipfile_serialization=not old
        )
        for _ in range(400):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                torch.load(io.BytesIO(bytes(data)))
            except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError):
                pass


def test_text_before_and_garbage():
    for data in (b"garbage" * 20, b"\x89PNG\r\n" + b"\0" * 50, b"<html></html>", b"\0" * 1000):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported operand"):
            torch.load(io.BytesIO(data))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))
    for data in (b"PK\3\4aaaa", b"PK\3\4" + b"\0" * 1000):
        with pytest.raises(RuntimeError, match="central directory"):
            torch.load(io.BytesIO(data))


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "no")
    with pytest.raises(AttributeError, match="seekable"):
        torch.load(b"bytes")
    with pytest.raises(ValueError, match="file path"):
        torch.load(io.BytesIO(saved(1)), mmap=True)


@pytest.mark.parametrize(
    ("name", "data", "error", "match"),
    [
        ("data.pkl", None, RuntimeError, "locating file data.pkl"),
        ("version", None, RuntimeError, "hasRecord"),
        ("data/0", None, RuntimeError, "locating file data/0"),
        ("data/0", b"1", RuntimeError, r"record size \(1 bytes\) does not match"),
        ("data/0", b"1" * 100, RuntimeError, r"record size \(100 bytes\) does not match"),
        ("data/0", b"", RuntimeError, r"record size \(0 bytes\) does not match"),
        ("byteorder", b"middle", ValueError, "Unknown endianness type: middle"),
        ("byteorder", b"x" * 5000, RuntimeError, "more than"),
        ("version", b"999\n", RuntimeError, "maximum supported"),
        ("version", b"0\n", RuntimeError, "minimum supported"),
        ("version", b"x\n", RuntimeError, "parse the version"),
        ("version", b"9" * 5000, RuntimeError, "more than"),
        ("constants.pkl", b"x", RuntimeError, "TorchScript"),
    ],
)
def test_records_that_are_wrong(load, name, data, error, match):
    r = records()
    r[f"archive/{name}"] = data
    if data is None:
        del r[f"archive/{name}"]
    with pytest.raises(error, match=match):
        load(packed(r))
    if name != "constants.pkl":
        return
    with pytest.raises(RuntimeError, match=r"use torch\.jit\.load"):
        load(packed(r), weights_only=False)


def test_records_elsewhere(load):
    with pytest.raises(RuntimeError, match="subdirectory"):
        load(packed({**records(), "other/x": b"1"}))
    with pytest.raises(RuntimeError, match="subdirectory"):
        load(packed({"x.pkl": b""}))
    with pytest.raises(RuntimeError, match="subdirectory"):
        load(packed({**records(), "../../etc/x": b"1"}))
    assert load(packed({**records(), "archive/../../x": b"1"})).tolist() == [1, 2]


def test_two_records_of_one_name(load):
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = packed([*records().items(), ("archive/data/0", b"\0" * 8)])
    with pytest.raises(RuntimeError, match="two records of that name"):
        load(twice)


def _directory(data: bytes, name: bytes) -> int:
    """Where the directory's entry of a record begins."""
    return data.rindex(name) - 46


def test_sizes_that_the_file_does_not_have(load):
    data = bytearray(saved(torch.zeros(4)))
    at = _directory(bytes(data), b"archive/data/0")
    struct.pack_into("<II", data, at + 20, 2**31, 2**31)
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
        load(bytes(data))
    data = bytearray(saved(torch.zeros(4)))
    struct.pack_into("<II", data, at + 20, 16, 2**31)
    with pytest.raises(RuntimeError, match="are declared"):
        load(bytes(data))
    data = bytearray(saved(torch.zeros(4)))
    struct.pack_into("<I", data, at + 42, 2**31)
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
        load(bytes(data))


def test_records_that_overlap(load):
    data = bytearray(saved([torch.zeros(400), torch.ones(400)]))
    first, second = (_directory(bytes(data), b"archive/data/" + k) for k in (b"0", b"1"))
    (offset,) = struct.unpack_from("<I", data, first + 42)
    struct.pack_into("<I", data, second + 42, offset + 8)
    with pytest.raises(RuntimeError, match="overlaps"):
        load(bytes(data))


def test_compressed_archives_are_read_but_not_mapped(tmp_path):
    packed_again = packed(records(), zipfile.ZIP_DEFLATED)
    assert torch.load(packed_again).tolist() == [1, 2]
    path = tmp_path / "x.pt"
    path.write_bytes(packed_again.getvalue())
    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(path, mmap=True)
    with pytest.raises(RuntimeError, match="compression method"):
        torch.load(packed(records(), zipfile.ZIP_LZMA))


def test_a_bomb_claims_more_than_deflate_can_give():
    r = records()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in r.items():
            archive.writestr(name, data)
    data = bytearray(out.getvalue())
    at = _directory(bytes(data), b"archive/data/0")
    struct.pack_into("<I", data, at + 24, 2**31)
    with pytest.raises(RuntimeError, match="are declared"):
        torch.load(io.BytesIO(bytes(data)))


def test_compressed_data_that_is_damaged():
    r = records()
    r["archive/data/0"] = bytes(range(8))
    data = bytearray(packed(r, zipfile.ZIP_DEFLATED).getvalue())
    start = data.index(b"archive/data/0") + len(b"archive/data/0")
    for i in range(10):
        broken = bytearray(data)
        broken[start + i] ^= 0xFF
        try:
            torch.load(io.BytesIO(bytes(broken)))
        except RuntimeError as e:
            assert "PytorchStreamReader" in str(e)


def test_tar_archives():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("sys_info"))
    for options in OPTIONS:
        out.seek(0)
        with pytest.raises(RuntimeError, match="tar archive"):
            torch.load(out, **options)


def test_old_format_headers():
    magic = 0x1950A86A20F9469CFC6C
    cases = [
        ((5,), "Invalid magic number"),
        ((magic, 1002), "Invalid protocol version: 1002"),
        (("x",), "Invalid magic number"),
    ]
    for values, match in cases:
        data = b"".join(pickle.dumps(v, 2) for v in values)
        for options in OPTIONS:
            with pytest.raises(RuntimeError, match=match):
                torch.load(io.BytesIO(data), **options)


def test_old_format_is_not_mapped(tmp_path):
    torch.save(torch.ones(2), tmp_path / "x", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(tmp_path / "x", mmap=True)


def test_records_begin_at_multiples_of_64_and_have_checksums():
    data = saved([torch.zeros(i) for i in range(30)])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            n, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            start = info.header_offset + 30 + n + extra
            assert start % 64 == 0
            assert data[start : start + info.file_size] == archive.read(info)
            assert info.CRC == zlib.crc32(archive.read(info))
        names = archive.namelist()
    assert names[:4] == [
        f"archive/{n}" for n in ("data.pkl", ".format_version", ".storage_alignment", "byteorder")
    ]
    assert names[-2:] == ["archive/version", "archive/.data/serialization_id"]


def test_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        data = saved(torch.ones(2))
    finally:
        torch.serialization.set_crc32_options(True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {i.CRC for i in archive.infolist()} == {0}
    assert torch.load(io.BytesIO(data)).tolist() == [1, 1]


def test_the_same_object_gives_the_same_file():
    a, b = (saved({"x": torch.arange(4.0)}) for _ in range(2))
    assert a == b != saved({"x": torch.arange(5.0)})


def test_more_than_4_gigabytes_are_addressed(monkeypatch):
    """The wide fields, with a limit that a small test reaches."""
    from torchlab.serialization import zip_writer

    monkeypatch.setattr(zip_writer, "_LIMIT", 1000)
    out = io.BytesIO()
    writer = zip_writer.ZipWriter(out, "archive")
    writer.record("big", bytes(2000))
    writer.record("small", b"abc")
    end = out.tell()
    # Readers know the wide fields by 0xFFFFFFFF: put it where the lowered limit stands.
    writer.close()
    data = bytearray(out.getvalue())
    at = data.index(struct.pack("<II", 1000, 1000), end)
    struct.pack_into("<II", data, at, 0xFFFFFFFF, 0xFFFFFFFF)
    for entry in (data.index(b"PK\1\2", end), data.index(b"PK\1\2", end + 10)):
        if struct.unpack_from("<I", data, entry + 42)[0] == 1000:
            struct.pack_into("<I", data, entry + 42, 0xFFFFFFFF)
    tail = data.rindex(b"PK\5\6")
    for field in (12, 16):
        if struct.unpack_from("<I", data, tail + field)[0] == 1000:
            struct.pack_into("<I", data, tail + field, 0xFFFFFFFF)
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        sizes = {i.filename: (i.file_size, i.header_offset) for i in archive.infolist()}
    assert sizes["archive/big"] == (2000, 0)
    assert sizes["archive/small"][0] == 3 and sizes["archive/small"][1] > 2000
