"""A corpus of hostile files on disk, each loaded in a process that is watched.

Python's audit events tell of every command, connection, written file and removed file. The process
has to live, each load has to end in an error that says what is wrong (or, where only numbers were
changed, in a tensor), and none of these events may happen.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import zipfile

import torchlab as torch
from tests.serialization.tools import packed, parts, saved, with_pickle

AT_LEAST = 200

WATCHED = r"""
import json, pathlib, sys, time, warnings
import torchlab as torch
warnings.simplefilter("ignore")
torch.load(sys.argv[2])  # everything that is loaded lazily is loaded now
events = []
FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.startfile", "subprocess.",
    "socket.", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.link",
    "os.symlink", "os.truncate", "os.putenv", "shutil.", "ctypes.dlopen", "pty.", "webbrowser.",
    "urllib.", "code.__new__", "function.__new__", "sys.addaudithook", "sys.settrace",
)
def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or event.startswith(FORBIDDEN):
        events.append(f"{event} {arguments!r:.200}")
sys.addaudithook(watch)
folder, outcomes = pathlib.Path(sys.argv[1]), {}
paths = sorted(folder.glob("*.pt"))
for path in paths:
    for options in ({}, {"mmap": True}, {"map_location": "meta"}):
        before = time.perf_counter()
        try:
            torch.load(path, **options)
            outcome = "loaded"
        except Exception as e:
            outcome = f"{type(e).__name__}: {e}"
        seconds = time.perf_counter() - before
        outcomes[f"{path.name} {options}"] = [outcome, seconds]
try:  # (ru_maxrss would begin at what the parent has)
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
except OSError:  # not Linux
    peak = 0
print(json.dumps({"events": events, "outcomes": outcomes, "peak": peak}))
"""


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def _commands(mark: str):
    """Objects whose pickles run something."""
    yield from (
        Calls(os.system, f"touch {mark}"),
        Calls(subprocess.run, ["touch", mark]),
        Calls(subprocess.Popen, ["touch", mark]),
        Calls(eval, f"open({mark!r}, 'w')"),
        Calls(exec, f"open({mark!r}, 'w')"),
        Calls(open, mark, "w"),
        Calls(os.mkdir, mark),
        Calls(os.unlink, mark),
        Calls(pathlib.Path.touch, pathlib.PurePosixPath(mark)),
        Calls(getattr, Calls(__import__, "os"), "system"),
        Calls(functools.partial, os.system, f"touch {mark}"),
        Calls(map, os.system, [f"touch {mark}"]),
        Calls(list, Calls(map, os.system, [f"touch {mark}"])),
        Calls(pickle.loads, pickle.dumps(Calls(os.system, f"touch {mark}"))),
        Calls(torch.load, mark),
        Calls(torch.save, 1, mark),
        Calls(torch.hub.load, "owner/name", "model"),
        Calls(torch.hub.download_url_to_file, "http://127.0.0.1:9/x", mark),
        Calls(sys.exit, 3),
        Calls(os._exit, 3),
        Calls(sys.settrace, None),
        Calls(__import__, "antigravity"),
        Calls(type, "X", (), {}),
        Calls(compile, "1", "x", "eval"),
        Calls(bytearray, 10**15),
    )


_NAMES = (
    "../evil", "../../../../tmp/evil", "/etc/passwd", "..\\..\\evil", "C:\\evil", "archive/../evil",
    "archive//data.pkl", "archive/data/../../evil", "archive/\0", "archive/data/" + "a" * 60000,
    "archive/./data.pkl", "\u202earchive/data.pkl", "archive", "/", "~", "~/evil",
    "archive/data/0/", "archive/data/-1", "archive/data/0 ", "file:///etc/passwd",
)  # fmt: skip


def _bombs(good: bytes):
    records = parts(good)
    names = list(records)
    zeros = b"\0" * 20_000_000
    with_bomb = {**records, names[0].split("/")[0] + "/data/0": zeros}
    yield packed(with_bomb, zipfile.ZIP_DEFLATED).getvalue()  # the size is not the tensor's
    yield packed({**records, names[0]: zeros}, zipfile.ZIP_DEFLATED).getvalue()
    yield packed({**records, names[0]: b"\x80\x02" + b"]" * 300_000}, 8).getvalue()
    yield packed({**records, names[0]: b"\x80\x02(" + b"N" * 300_000 + b"t."}, 8).getvalue()
    deep = b"\x80\x02" + b"(" * 50_000 + b"t" * 50_000 + b"."
    yield packed({**records, names[0]: deep}, zipfile.ZIP_DEFLATED).getvalue()
    inner = packed({"archive/data.pkl": zeros}, zipfile.ZIP_DEFLATED).getvalue()
    yield packed({**records, names[0]: inner}).getvalue()
    many = {f"archive/data/{i}": b"" for i in range(3_000)}
    yield packed({**records, **many}).getvalue()
    for size in (0xFFFFFFFE, 0x7FFFFFFF, 0x40000000, 0x10000):  # sizes that only the directory has
        raw = bytearray(good)
        at = raw.rindex(b"PK\1\2")
        raw[at + 20 : at + 28] = struct.pack("<II", size, size)
        yield bytes(raw)
    double = bytearray(good)
    first = double.index(b"PK\1\2")
    second = double.index(b"PK\1\2", first + 4)
    double[second + 42 : second + 46] = double[first + 42 : first + 46]  # two records, one place
    yield bytes(double)


def _corpus(folder: pathlib.Path, mark: str) -> dict[str, bytes]:
    rng = random.Random(0)
    torch.manual_seed(0)
    found: dict[str, bytes] = {}

    def add(kind: str, data: bytes) -> None:
        found[f"{kind}{sum(k.startswith(kind) for k in found):03d}.pt"] = data

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict()
    good = saved({"model": model, "step": 3})
    old = saved({"model": model, "step": 3}, _use_new_zipfile_serialization=False)
    head = saved(1, _use_new_zipfile_serialization=False)
    head = head[: head.index(b"\x80\x02K\x01.")]
    for evil in _commands(mark):
        data = pickle.dumps({"weight": torch.float32, "x": [evil]}, 2)
        add("command", with_pickle(data).getvalue())
        add("command", head + data)
        add("command", data)  # no archive at all
    for call in (b"ctorch\nzeros\n", b"ctorch\nload\n", b"cos\nsystem\n", b"cposix\nsystem\n"):
        for arguments in (b"\x8a\x08" + b"\1" * 7 + b"\0\x85", b"X\4\0\0\0exit\x85", b")", b"]"):
            add("command", with_pickle(b"\x80\x02" + call + arguments + b"R.").getvalue())
    pickled = parts(good)[next(n for n in parts(good) if n.endswith("data.pkl"))]
    for name in _NAMES:
        records = [("archive/data.pkl", pickled), ("archive/version", b"3\n"), (name, b"x")]
        add("name", packed(records).getvalue())
    for bomb in _bombs(good):
        add("bomb", bomb)
    for whole in (good, old):
        for _ in range(25):
            add("cut", whole[: rng.randrange(len(whole))])
        for _ in range(45):  # where the structure is: the end of an archive, the pickles
            raw = bytearray(whole)
            at = rng.randrange(len(raw))
            raw[at] ^= 1 << rng.randrange(8)
            add("flip", bytes(raw))
    for magic in (b"", b"PK\3\4", b"\x80\x02", b"\x1f\x8b", b"ustar" * 200, b"\x93NUMPY"):
        add("noise", magic + rng.randbytes(5000))
    for name, data in found.items():
        (folder / name).write_bytes(data)
    return found


def test_nothing_runs_nothing_crashes_and_errors_say_why(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    mark = tmp_path / "harm"
    corpus = _corpus(folder, str(mark))
    assert len(set(corpus.values())) >= AT_LEAST
    good = tmp_path / "good.pt"
    torch.save({"x": torch.ones(2)}, good)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(folder), str(good)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["events"] == []
    assert not mark.exists()
    assert len(told["outcomes"]) == 3 * len(corpus)
    assert told["peak"] < 1_000_000  # KiB of the whole process: the bombs claim gigabytes
    for name, (outcome, seconds) in told["outcomes"].items():
        assert seconds < 20, (name, seconds)
        kind, _, text = outcome.partition(": ")
        if not name.startswith(("flip", "cut", "name", "bomb")):
            assert outcome != "loaded", name
        if outcome != "loaded":
            assert kind in (
                "RuntimeError", "UnpicklingError", "EOFError", "ValueError", "OSError"
            ), (name, outcome[:300])  # fmt: skip
            assert text and len(text) < 5000, (name, text[:200])
        if name.startswith("command"):
            assert kind == "UnpicklingError" or "mmap" in text, (name, outcome[:300])
