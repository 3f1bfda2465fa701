"""Files as older versions of PyTorch wrote them, put together by hand."""

from __future__ import annotations

import io
import pickle
import struct

import numpy as np
import pytest

import torchlab as torch

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


def text(s: str) -> bytes:
    raw = s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def old_file(body: bytes, storages: dict[str, np.ndarray], little=True) -> io.BytesIO:
    head = b"".join(
        pickle.dumps(x, 2) for x in (MAGIC, PROTOCOL, {"little_endian": little, "type_sizes": {}})
    )
    tail = pickle.dumps(list(storages), 2)
    for a in storages.values():
        tail += struct.pack("<q", a.size) + a.tobytes()
    return io.BytesIO(head + b"\x80\x02" + body + b"." + tail)


def storage(key: str, n: int, kind="FloatStorage", where="cpu", view: bytes = b"N") -> bytes:
    size = b"K" + bytes([n])
    parts = text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text(where)
    return b"(" + parts + size + view + b"tQ"


def tensor(stored: bytes, offset: int, n: int) -> bytes:
    """By the function from before 0.4."""
    where = bytes([ord("K"), offset, ord("K"), n]) + b"\x85K\x01\x85"
    return b"ctorch._utils\n_rebuild_tensor\n(" + stored + where + b"tR"


NUMBERS = np.arange(6, dtype=np.float32)


def test_the_oldest_form_of_a_tensor():
    file = old_file(tensor(storage("7", 6), 2, 3), {"7": NUMBERS})
    for options in ({}, {"weights_only": False}, {"map_location": "sim"}):
        file.seek(0)
        t = torch.load(file, **options)
        assert t.tolist() == [2, 3, 4]


@pytest.mark.parametrize("where", [None, "sim"])
def test_views_of_storages(where):
    def view(key, offset, size):
        return text(key) + bytes([ord("K"), offset, ord("K"), size]) + b"\x87"

    a = tensor(storage("1", 6, view=view("a", 1, 4)), 0, 4)
    b = tensor(storage("1", 6, view=view("b", 3, 2)), 0, 2)
    again = tensor(storage("1", 6, view=view("a", 1, 4)), 0, 4)
    x, y, z = torch.load(old_file(a + b + again + b"\x87", {"1": NUMBERS}), map_location=where)
    assert x.tolist() == z.tolist() == [1, 2, 3, 4] and y.tolist() == [3, 4]
    with pytest.raises(RuntimeError, match="beyond its storage"):
        bad = tensor(storage("1", 6, view=view("a", 4, 4)), 0, 4)
        torch.load(old_file(bad, {"1": NUMBERS}))


def test_classes_with_their_source():
    pid = b"(" + text("module") + b"ctorch.nn.modules.linear\nIdentity\n" + text("f.py")
    body = pid + text("class Identity: ...") + b"tQ"
    assert torch.load(old_file(body, {}), weights_only=False) is torch.nn.Identity
    with pytest.raises(pickle.UnpicklingError):
        torch.load(old_file(body, {}))


def test_the_other_byte_order():
    little = np.little_endian
    file = old_file(tensor(storage("1", 6), 0, 6), {"1": NUMBERS.byteswap()}, little=not little)
    assert torch.load(file).tolist() == [0, 1, 2, 3, 4, 5]


def test_files_of_gpus():
    body = tensor(storage("1", 6, "cuda.FloatStorage", "cuda:0"), 0, 6)
    assert torch.load(old_file(body, {"1": NUMBERS}), map_location="cpu").sum() == 15
    body = tensor(storage("1", 6, "FloatStorage", "cuda:3"), 0, 6)
    moved = torch.load(old_file(body, {"1": NUMBERS}), map_location={"cuda:3": "sim:0"})
    assert moved.device == torch.device("sim:0") and moved.sum() == 15


@pytest.mark.parametrize(
    ("storages", "match"),
    [
        ({}, "does not fit"),
        ({"2": NUMBERS}, "does not fit"),
        ({"1": NUMBERS, "2": NUMBERS}, "does not fit"),
        ({"1": NUMBERS[:5]}, "wrong byte size"),
    ],
)
def test_storages_that_do_not_fit(storages, match):
    with pytest.raises(RuntimeError, match=match):
        file = old_file(tensor(storage("1", 6), 0, 6), storages)
        torch.load(io.BytesIO(file.getvalue() + bytes(100)))


def test_strings_of_python_2():
    body = b"}U\x01aK\x01sU\x02\xc3\xa9K\x02s"
    assert torch.load(old_file(body, {})) == {"a": 1, "é": 2}
    for options in ({}, {"weights_only": False}):
        assert torch.load(old_file(body, {}), encoding="bytes", **options) == {
            b"a": 1,
            b"\xc3\xa9": 2,
        }
        assert torch.load(old_file(body, {}), encoding="latin1", **options)["Ã©"] == 2
