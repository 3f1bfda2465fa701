"""TarShards: layout, order, parts, resuming, servers, and tars that nobody should trust."""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import json
import os
import tarfile
import threading

import numpy as np
import pytest
from PIL import Image

import torchlab as torch
from torchlab.utils import data as D


def write(path, members, **options):
    """A tar of (name, bytes)."""
    with tarfile.open(path, options.pop("mode", "w"), **options) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return str(path)


def numbered(folder, shards=4, samples=5):
    for s in range(shards):
        names = range(s * samples, (s + 1) * samples)
        write(folder / f"part-{s:02d}.tar", [(f"{i:04d}.cls", b"%d" % i) for i in names])
    return str(folder / "part-*.tar")


def numbers(loader):
    return [int(sample["cls"]) for sample in loader]


def saved(make):
    buffer = io.BytesIO()
    make(buffer)
    return buffer.getvalue()


def picture(kind):
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    return saved(lambda b: Image.fromarray(pixels).save(b, kind)), pixels


def test_fields(tmp_path):
    png, pixels = picture("PNG")
    members = [
        ("a/one.txt", "ä".encode()),
        ("a/one.json", json.dumps({"x": [1]}).encode()),
        ("a/one.CLS", b"7\n"),
        ("a/one.npy", saved(lambda b: np.save(b, np.arange(3)))),
        ("a/one.pth", saved(lambda b: torch.save({"w": torch.ones(2)}, b))),
        ("a/one.seg.png", png),
        ("a/one.jpg", picture("JPEG")[0]),
        ("a/one.raw", b"\0\1"),
        ("a/.hidden", b"x"),
        ("__meta__.json", b"{"),
        ("b/one.txt", b"other"),
    ]
    one, other = D.TarShards(write(tmp_path / "x.tar", members))
    assert one["__key__"] == "a/one" and one["__url__"].endswith("x.tar")
    assert (one["txt"], one["json"], one["cls"]) == ("ä", {"x": [1]}, 7)
    assert one["npy"].tolist() == [0, 1, 2] and one["pth"]["w"].tolist() == [1, 1]
    assert one["seg.png"].numpy().tolist() == pixels.transpose(2, 0, 1).tolist()
    assert one["jpg"].shape == (3, 2, 3) and one["jpg"].dtype == torch.uint8
    assert one["raw"] == b"\0\1" and len(one) == 10
    assert other == {"__key__": "b/one", "__url__": one["__url__"], "txt": "other"}
    assert next(iter(D.TarShards(one["__url__"], decode=False)))["cls"] == b"7\n"
    own = D.TarShards(one["__url__"], decode={"raw": len}, fields=["raw;bin", "txt", "cls"])
    stream = iter(own)
    assert next(stream) == (2, "ä", 7)
    with pytest.raises(KeyError, match=r"'b/one' has no field 'raw;bin', only \['txt'\]"):
        next(stream)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_formats_long_names_and_gzip(tmp_path, form):
    key = "folder/" * 12 + "name" * 10 + ("é" * 50 if form != tarfile.USTAR_FORMAT else "")
    path = write(tmp_path / "x.tgz", [(key + ".txt", b"y" * 513)], mode="w:gz", format=form)
    (sample,) = D.TarShards(path)
    assert sample["__key__"] == key and sample["txt"] == "y" * 513


def test_patterns(tmp_path):
    numbered(tmp_path, 3)
    base = str(tmp_path)
    names = [f"{base}/part-{i:02d}.tar" for i in range(3)]
    assert D.TarShards(base + "/part-{00..02}.tar").urls == names
    assert D.TarShards([base + "/part-0{0,2}.tar", tmp_path / "part-01.tar"]).urls == [
        names[0],
        names[2],
        names[1],
    ]
    assert D.TarShards(base + "/part-*.tar").urls == names
    assert D.TarShards("http://h/{a,b{8..10}}").urls == [
        "http://h/a", "http://h/b8", "http://h/a", "http://h/b9", "http://h/a", "http://h/b10",
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError, match=r"no file fits the pattern .*nothing-\*"):
        D.TarShards(base + "/nothing-*.tar")
    with pytest.raises(FileNotFoundError):
        list(D.TarShards(base + "/nothing.tar"))
    with pytest.raises(ValueError, match="not ftp://"):
        D.TarShards("ftp://host/x.tar")
    with pytest.raises(ValueError, match="urls is empty"):
        D.TarShards([])


def test_shuffled(tmp_path):
    data = D.TarShards(numbered(tmp_path), shuffle=6, seed=3)
    first, second = numbers(data), numbers(data)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second and first != list(range(20))
    again = D.TarShards(numbered(tmp_path), shuffle=6, seed=3)
    again.set_epoch(1)
    assert numbers(again) == second
    assert numbers(D.TarShards(numbered(tmp_path), shuffle=6, seed=4)) != first
    only = numbers(D.TarShards(numbered(tmp_path), shuffle_shards=True, seed=1))
    assert [n % 5 for n in only] == [0, 1, 2, 3, 4] * 4 and only != sorted(only)


@pytest.mark.parametrize("shards", [1, 3, 8])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_part_gets_its_own(tmp_path, shards, workers):
    pattern = numbered(tmp_path, shards)
    parts = []
    for rank in range(2):
        data = D.TarShards(pattern, shuffle=4, rank=rank, world_size=2)
        loader = D.DataLoader(data, None, num_workers=workers)
        parts.append(numbers(loader))
    assert sorted(parts[0] + parts[1]) == list(range(5 * shards)) and all(parts)
    with pytest.raises(ValueError, match="rank 2 of 2"):
        D.TarShards(pattern, rank=2, world_size=2)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [0, 7])
@pytest.mark.parametrize("shards", [1, 4])
def test_resumed(tmp_path, workers, shuffle, shards):
    pattern = numbered(tmp_path, shards, 40 // shards)

    def make():
        return D.DataLoader(D.TarShards(pattern, shuffle=shuffle), 3, num_workers=workers)

    for after in (0, 1, 4, 12) if workers == 0 else (3,):
        loader = make()
        batches = iter(loader)
        for _ in range(after):
            next(batches)
        torch.save(loader.state_dict(), tmp_path / "s.pt")
        rest = [b["__key__"] for b in batches] + [b["__key__"] for b in loader]
        other = make()
        other.load_state_dict(torch.load(tmp_path / "s.pt", weights_only=True))
        assert [b["__key__"] for b in other] + [b["__key__"] for b in other] == rest
    between = make()
    list(between)
    state = between.state_dict()
    expected = [b["__key__"] for b in between]
    other = make()
    other.load_state_dict(state)
    assert [b["__key__"] for b in other] == expected


def test_resuming_reads_only_what_is_needed(tmp_path):
    pattern = numbered(tmp_path, 4)
    data = D.TarShards(pattern)
    stream = iter(data)
    for _ in range(11):
        next(stream)
    state = data.state_dict()
    (tmp_path / "part-00.tar").write_bytes(b"gone")
    other = D.TarShards(pattern)
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert numbers(other) == list(range(11, 20))
    with pytest.raises(ValueError, match="the state is of 4 files, this dataset has 1"):
        D.TarShards(str(tmp_path / "part-01.tar")).load_state_dict(state)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if "short" not in self.path:
            return super().do_GET()
        with open(os.path.join(self.directory, "part-00.tar"), "rb") as file:
            content = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:1300])
        return None


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = functools.partial(Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_address[1]}"
        found.shutdown()
        thread.join()


def test_from_a_server(tmp_path, server):
    numbered(tmp_path, 3)
    data = D.TarShards(server + "/part-{00..02}.tar")
    assert numbers(data) == list(range(15))
    assert numbers(D.DataLoader(data, None, num_workers=1)) == list(range(15))
    with pytest.raises(OSError, match="404"):
        list(D.TarShards(server + "/missing.tar"))
    with pytest.raises(tarfile.ReadError, match="short.tar, at byte .* cut off"):
        list(D.TarShards(server + "/short.tar"))


def header(name="a.txt", size=0, kind=tarfile.REGTYPE, **more):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


END = bytes(1024)
GOOD = header("g.txt", 3) + b"abc" + bytes(509)
BAD = {
    "cut in a header": (GOOD + header()[:200], "ends within a header"),
    "cut in the data": (GOOD + header(size=600) + b"x" * 100, "ends within 'a.txt'"),
    "cut between members": (GOOD, "ends within a header"),
    "empty": (b"", "ends within a header"),
    "no tar": (b"<html>" * 200, "no header of a tar member"),
    "damaged header": (GOOD + b"\xff" + header()[1:] + END, "no header of a tar member"),
    "symbolic link": (
        header(kind=tarfile.SYMTYPE, linkname="/etc/passwd") + END,
        "'a.txt' is a symbolic link",
    ),
    "hard link": (header(kind=tarfile.LNKTYPE, linkname="../x") + END, "is a hard link"),
    "device": (header(kind=tarfile.CHRTYPE) + END, "is a device"),
    "pipe": (header(kind=tarfile.FIFOTYPE) + END, "is a named pipe"),
    "sparse": (header(kind=tarfile.GNUTYPE_SPARSE) + END, "is a sparse file"),
    "unknown kind": (header(kind=b"Z") + END, "unknown kind"),
    "huge": (header(size=1 << 40) + END, r"says that it has 1099511627776 bytes; at most"),
    "negative": (header(size=-512) + END, "says that it has -512 bytes"),
    "long name without end": (header(kind=b"L", size=1 << 33), "a long name says"),
    "huge extended header": (header(kind=b"x", size=1 << 33), "an extended header says"),
    "damaged extended header": (
        header(kind=b"x", size=20) + b"99 path=x\n".ljust(512, b"z") + END,
        "an extended header is damaged",
    ),
    "endless number in it": (
        header(kind=b"x", size=400) + b"9" * 400 + bytes(112) + END,
        "an extended header is damaged",
    ),
    "sparse by it": (
        header(kind=b"x", size=20) + b"20 GNU.sparse.ma=1x\n".ljust(512, b"\0") + header() + END,
        "is a sparse file",
    ),
    "bad size in it": (
        header(kind=b"x", size=11) + b"11 size=-1\n".ljust(512, b"\0") + header() + END,
        "has the size '-1'",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_tars(tmp_path, what):
    content, message = BAD[what]
    path = tmp_path / "bad.tar"
    path.write_bytes(content)
    before = set(os.listdir(tmp_path))
    with pytest.raises(tarfile.ReadError, match=message) as caught:
        list(D.TarShards(path))
    assert "bad.tar, at byte" in str(caught.value) and set(os.listdir(tmp_path)) == before


def test_damaged_gzip_and_bombs(tmp_path):
    whole = gzip.compress(header(size=3000) + os.urandom(3000) + bytes(72) + END)
    wrong = whole[:-8] + b"0000" + whole[-4:]
    path = tmp_path / "x.tar.gz"
    for content in (whole[:-4], whole[:700], wrong, b"\x1f\x8b" + b"x" * 40):
        path.write_bytes(content)
        with pytest.raises(tarfile.ReadError, match="compressed data is damaged or cut off"):
            list(D.TarShards(path))
    path.write_bytes(gzip.compress(header(size=1 << 26) + bytes(1 << 26) + END))
    with pytest.raises(tarfile.ReadError, match="at most 1000000 are read"):
        list(D.TarShards(path, largest=1_000_000))
    many = write(tmp_path / "y.tar", [(f"s.{i}", b"x" * 400) for i in range(3)])
    with pytest.raises(ValueError, match="the sample 's' has more than 1000 bytes"):
        list(D.TarShards(many, largest=1000))


def test_hostile_names_are_only_names(tmp_path):
    names = ["../../evil.txt", "/abs/evil.txt", "a\nb.txt"]
    path = write(tmp_path / "x.tar", [(n, b"x") for n in names])
    keys = [s["__key__"] for s in D.TarShards(path)]
    assert keys == ["../../evil", "/abs/evil", "a\nb"]
    assert os.listdir(tmp_path) == ["x.tar"]


def test_hostile_fields(tmp_path):
    import pickle

    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    objects = saved(lambda b: np.save(b, np.array([Runs()], object), allow_pickle=True))
    fields = {
        "npy": objects,
        "pth": pickle.dumps(Runs()),
        "json": b"{",
        "cls": b"x",
        "txt": b"\xff",
        "png": b"no picture",
        "jpg": picture("JPEG")[0][:200],
    }
    for extension, content in fields.items():
        path = write(tmp_path / "x.tar", [(f"s.{extension}", content)])
        with pytest.raises(ValueError, match=rf"x.tar: the field '{extension}' of the sample 's'"):
            list(D.TarShards(path))
    assert not (tmp_path / "ran").exists()
    twice = write(tmp_path / "x.tar", [("s.txt", b""), ("s.txt", b"")])
    with pytest.raises(ValueError, match="the sample 's' has the field 'txt' twice"):
        list(D.TarShards(twice))


def test_a_workers_error_says_where(tmp_path):
    path = tmp_path / "bad.tar"
    path.write_bytes(GOOD)
    with pytest.raises(tarfile.ReadError, match="bad.tar, at byte 1024: the file is cut off"):
        list(D.DataLoader(D.TarShards(path), 4, num_workers=1))


def test_buckets():
    lengths = torch.randint(1, 200, (1003,)).tolist()
    sampler = D.BucketBatchSampler(lengths, 8, bucket=20)
    batches = list(sampler)
    assert sorted(sum(batches, [])) == list(range(1003)) and len(batches) == len(sampler) == 126
    assert batches != list(sampler)
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches]
    assert np.mean(spread) < 25
    short = D.BucketBatchSampler(lengths, 8, drop_last=True)
    assert {len(b) for b in short} == {8} and len(list(short)) == len(short) == 125
    plain = list(D.BucketBatchSampler([3, 1, 2], 2, shuffle=False))
    assert plain == [[1, 2], [0]] and list(D.BucketBatchSampler([], 2)) == []
    a, b = (
        list(D.BucketBatchSampler(lengths, 8, generator=torch.Generator().manual_seed(1)))
        for _ in range(2)
    )
    assert a == b
    loader = D.DataLoader(range(1003), batch_sampler=sampler)
    batches = iter(loader)
    for _ in range(40):
        next(batches)
    state = loader.state_dict()
    rest = [b.tolist() for b in batches]
    loader.load_state_dict(state)
    assert [b.tolist() for b in loader] == rest
    with pytest.raises(ValueError, match="batch_size should be a positive integer, got 0"):
        D.BucketBatchSampler(lengths, 0)
    with pytest.raises(ValueError, match=r"got the shape \(1, 2\)"):
        D.BucketBatchSampler([[1, 2]], 2)
