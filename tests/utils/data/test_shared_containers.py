"""SharedList and SharedDict: what they hold, how they travel, and that workers copy nothing."""

from __future__ import annotations

import os
import pickle
from multiprocessing import reduction

import numpy as np
import pytest

import torchlab as torch
from torchlab import multiprocessing as mp
from torchlab.utils import data as D

ITEMS = ["a", {"b": [1, 2]}, None, np.arange(3), "ä" * 5, (1, 2.5)]


def test_a_list():
    shared = D.SharedList(ITEMS[:3] + ITEMS[4:])
    plain = ITEMS[:3] + ITEMS[4:]
    assert len(shared) == 5 and list(shared) == plain and shared[-1] == plain[-1]
    assert list(shared[1:4]) == plain[1:4] and list(shared[::-2]) == plain[::-2]
    assert list(shared[1:][1:]) == plain[2:] and shared[1:4][-1] == plain[3]
    assert None in shared and shared.index("a") == 0 and list(reversed(shared)) == plain[::-1]
    shared[1]["b"].append(3)
    assert shared[1] == {"b": [1, 2]}
    assert not hasattr(shared, "append")
    with pytest.raises(TypeError):
        shared[0] = 1
    with pytest.raises(IndexError, match="index 5 is out of range for 5 items"):
        shared[5]
    with pytest.raises(TypeError):
        shared["a"]
    assert repr(shared).startswith("SharedList(5 items")


def test_nothing_in_it():
    assert list(D.SharedList()) == [] and dict(D.SharedDict()) == {}
    assert 1 not in D.SharedDict() and len(pickle.loads(pickle.dumps(D.SharedList()))) == 0


def test_a_dictionary():
    plain = {"a": 1, b"a": 2, 1: "one", (1, "x", None): [3], None: 4, -2.5: 5, ("ab", "c"): 6}
    plain |= {("a", "bc"): 7, 2**70: 8}
    shared = D.SharedDict(plain)
    assert dict(shared) == plain and list(shared) == list(plain) and len(shared) == 9
    assert all(shared[key] == value for key, value in plain.items())
    assert shared[1.0] == shared[True] == shared[np.int64(1)] == "one"
    assert shared.get("b", 0) == 0 and "b" not in shared and [] not in shared
    with pytest.raises(KeyError, match="'b'"):
        shared["b"]
    with pytest.raises(TypeError, match="keys are text, bytes.* found frozenset"):
        D.SharedDict({frozenset(): 1})
    many = D.SharedDict((f"key {i}", i) for i in range(3000))
    assert all(many[f"key {i}"] == i for i in range(0, 3000, 7))


def test_two_keys_of_one_digest(monkeypatch):
    monkeypatch.setattr("torchlab.utils.data.shared_containers._digest", lambda key: 7)
    shared = D.SharedDict({"a": 1, "b": 2})
    assert shared["a"] == 1 and shared["b"] == 2 and "c" not in shared


def test_a_file_holds_the_items(tmp_path):
    shared = D.SharedList(ITEMS[:2])[1:]
    assert list(pickle.loads(pickle.dumps(shared))) == ITEMS[1:2]
    torch.save(D.SharedDict({"a": 1}), tmp_path / "d.pt")
    assert torch.load(tmp_path / "d.pt", weights_only=False)["a"] == 1


def test_another_process_gets_a_handle():
    shared = D.SharedList(["x" * 1000] * 1000)
    assert len(reduction.ForkingPickler.dumps(shared)) < 5000


def _answer(shared, table, answers):
    answers.put((list(shared[3:5]), table["seven"], shared._data.is_shared()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_another_process(method):
    context = mp.get_context(method)
    answers = context.SimpleQueue()
    shared, table = D.SharedList(range(10)), D.SharedDict({"seven": 7})
    process = context.Process(target=_answer, args=(shared, table, answers))
    process.start()
    assert answers.get() == ([3, 4], 7, True)
    process.join()


class Lookup(D.Dataset):
    """Reads all its names for every sample, and says how much memory is its process's own."""

    def __init__(self, names):
        self.names = names

    def __len__(self):
        return 2

    def __getitem__(self, i):
        before = dirty()
        count = sum(len(name) for name in self.names)
        after = dirty()
        return count, after - before, after


def dirty():
    """Private_Dirty in KiB."""
    with open(f"/proc/{os.getpid()}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty"))


LINUX = pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps_rollup"), reason="smaps are Linux's"
)


@LINUX
def test_forked_workers_do_not_copy_it():
    names = [f"folder/of/images/{i:09d}.png" for i in range(300_000)]  # 24 MB
    grown = {}
    for kind, made in (("plain", names), ("shared", D.SharedList(names))):
        loader = D.DataLoader(Lookup(made), None, num_workers=1, multiprocessing_context="fork")
        answers = list(loader)
        assert answers[0][0] == sum(map(len, names))
        grown[kind] = answers[0][1]
    assert grown["plain"] > 15_000 and grown["shared"] < 1500


@LINUX
def test_spawned_workers_do_not_copy_it():
    names = [f"folder/of/images/{i:09d}.png" for i in range(300_000)]
    own = {}
    for kind, made in (("plain", names), ("shared", D.SharedList(names))):
        loader = D.DataLoader(Lookup(made), None, num_workers=1, multiprocessing_context="spawn")
        own[kind] = list(loader)[0][2]
    assert own["plain"] - own["shared"] > 15_000
