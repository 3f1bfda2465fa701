"""Files made to do harm: nothing runs, and memory and time stay in proportion to the file."""

from __future__ import annotations

import builtins
import functools
import io
import os
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc

import pytest

import torchlab as torch
from tests.serialization.tools import saved, with_pickle

ran = []


def trap(*args, **kwargs):
    ran.append(args)


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


class Traps:
    def __setstate__(self, state):
        trap(state)


class Trapped(torch.Tensor):
    def __setstate__(self, state):
        trap(state)


def text(s: str) -> bytes:
    raw = s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def refuse(data: bytes, match: str | None = None, storages=None):
    """weights_only=True refuses the pickle, in both formats."""
    ran.clear()
    for file in (with_pickle(data, storages), io.BytesIO(_old(data))):
        with pytest.raises((pickle.UnpicklingError, EOFError, RuntimeError), match=match):
            torch.load(file)
    assert not ran


def _old(data: bytes) -> bytes:
    head = saved(1, _use_new_zipfile_serialization=False)
    return head[: head.index(b"\x80\x02K\x01.")] + data


@pytest.mark.parametrize(
    "evil",
    [
        Calls(os.system, "echo harm"),
        Calls(subprocess.Popen, ["true"]),
        Calls(eval, "1"),
        Calls(exec, "1"),
        Calls(builtins.__import__, "os"),
        Calls(getattr, "x", "upper"),
        Calls(functools.partial, trap, 1),
        Calls(functools.reduce, trap, [1, 2]),
        Calls(map, trap, [1]),
        Calls(open, "/tmp/x", "w"),
        Calls(trap, 1),
        Calls(torch.load, "x"),
        Calls(torch.save, 1, "x"),
        Calls(torch.hub.load, "x"),
        Calls(pickle.loads, b"N."),
        Calls(type, "X", (), {}),
        Calls(sys.exit, 0),
        Traps(),
        trap,
        torch.nn.Linear(1, 1),
        torch.optim.SGD([torch.ones(1)], lr=1),
    ],
    ids=lambda e: getattr(getattr(e, "function", e), "__name__", type(e).__name__),
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_nothing_is_called(evil, protocol):
    if isinstance(evil, torch.nn.Module):
        protocol = max(protocol, 2)  # slots
    refuse(pickle.dumps(evil, protocol))
    refuse(pickle.dumps({"a": [torch.float32, evil]}, protocol))


@pytest.mark.parametrize(
    "name",
    [
        "os system", "posix system", "nt system", "sys exit", "os.path join", "builtins eval",
        "__builtin__ eval", "builtins getattr", "builtins object", "builtins type",
        "operator attrgetter", "operator methodcaller", "types FunctionType", "types CodeType",
        "importlib import_module", "runpy _run_code", "torch load", "torch.nn Linear",
        "torch.serialization load", "torch._utils _get_all_device_indices", "torch os",
        "torch.serialization.loading pickle", "torchlab.serialization.loading load",
        "collections namedtuple", "collections OrderedDict.fromkeys", "torch Tensor.share_memory_",
        "codecs encode", "_codecs decode", "torch.storage _load_from_bytes", "numpy load",
        "torch.jit load", "torch.hub load", "torch dtype", "torch.cuda.FloatStorage x",
    ],
)  # fmt: skip
def test_names_outside_the_table(name):
    module, attribute = name.split()
    refuse(f"\x80\x02c{module}\n{attribute}\n.".encode("latin-1"), "GLOBAL")
    call = f"\x80\x02c{module}\n{attribute}\n)R.".encode("latin-1")
    refuse(call, "GLOBAL")


def test_the_blocklist_is_above_the_allow_list():
    data = pickle.dumps(Calls(os.system, "echo harm"), 2)
    with torch.serialization.safe_globals([os.system, (os.system, "os.system")]):
        refuse(data, "is blocked")


OD = b"ccollections\nOrderedDict\n"
SIZE, TENSOR = b"ctorch\nSize\n", b"ctorch\nTensor\n"
BUILD_CASES = {
    "list": b"]}b.",
    "dict": b"}}b.",
    "class": SIZE + b"}b.",
    "class, with a dict": OD + b"}" + text("x") + b"K\x01sb.",
    "function": b"ctorch._utils\n_rebuild_tensor_v2\n}" + text("__code__") + b"K\x01sb.",
    "text": text("a") + b"}b.",
    "device": b"ctorch\ndevice\n" + text("cpu") + b"\x85R}" + text("type") + text("x") + b"sb.",
    "dtype": b"ctorch\nfloat32\n}" + text("itemsize") + b"K\x01sb.",
    "method of an OrderedDict": OD + b")R}" + text("items") + OD + b"sb.",
    "dunder of an OrderedDict": OD + b")R}" + text("__class__") + SIZE + b"sb.",
    "state that is no dict": OD + b")R]b.",
    "names that are no texts": OD + b")R}K\x01K\x01sb.",
}


@pytest.mark.parametrize("name", BUILD_CASES)
def test_states_are_not_set(name):
    refuse(b"\x80\x02" + BUILD_CASES[name])


CALLS = {
    "text": text("a") + b")R.",
    "list": b"]" + b")R.",
    "dtype": b"ctorch\nfloat32\n)R.",
    "arguments that are no tuple": SIZE + b"]R.",
    "tensor": TENSOR + b"J\xff\xff\xff\x7f\x85R.",
    "newobj tensor": TENSOR + b"J\xff\xff\xff\x7f\x85\x81.",
    "newobj of a function": b"ctorch._utils\n_rebuild_parameter\n)\x81.",
    "storage class": b"ctorch\nFloatStorage\nJ\xff\xff\xff\x7f\x85R.",
    "untyped storage": b"ctorch.storage\nUntypedStorage\nJ\xff\xff\xff\x7f\x85R.",
    "newobj storage": b"ctorch.storage\nUntypedStorage\nJ\xff\xff\xff\x7f\x85\x81.",
    "bytearray of a size": b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "codec": b"c_codecs\nencode\n" + text("a") + text("rot13") + b"\x86R.",
    "codec zip": b"c_codecs\nencode\n" + text("a") + text("zlib_codec") + b"\x86R.",
    "codec of a list": b"c_codecs\nencode\n]" + text("latin1") + b"\x86R.",
    "complex of a text": b"cbuiltins\ncomplex\n" + text("1e400") + b"\x85R.",
    "set of a text": b"cbuiltins\nset\n" + text("abc") + b"\x85R.",
    "counter of a list": b"ccollections\nCounter\n]\x85R.",
    "ordered dict of a text": OD + text("ab") + b"\x85R.",
    "size of texts": SIZE + b"(" + text("a") + b"t\x85R.",
    "device of another kind": b"ctorch\ndevice\n" + text("nonsense") + b"\x85R.",
    "layout of a dtype": b"ctorch.serialization\n_get_layout\n" + text("torch.float32") + b"\x85R.",
    "from_type with another maker": (
        b"ctorch._tensor\n_rebuild_from_type_v2\n(" + OD + TENSOR + b")Nt" + b"R."
    ),
    "from_type with no class": (
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
        + OD + b")Nt" + b"R."
    ),
    "from_type of itself": (
        b"ctorch._tensor\n_rebuild_from_type_v2\nq\x00(h\x00" + TENSOR + b")NtR."
    ),
    "parameter of a list": b"ctorch._utils\n_rebuild_parameter\n]\x88N\x87R.",
    "meta of a negative size": (
        b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n"
        b"J\xff\xff\xff\xff\x85K\x01\x85\x89tR."
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_other_arguments(name):
    refuse(b"\x80\x02" + CALLS[name])


def test_state_of_a_subclass_is_not_set_unless_it_is_allowed():
    t = torch.ones(2).as_subclass(Trapped)
    t.x = 1
    ran.clear()
    with pytest.raises(pickle.UnpicklingError, match="Trapped"):
        torch.load(io.BytesIO(saved(t)))
    assert not ran
    with torch.serialization.safe_globals([Trapped]):
        torch.load(io.BytesIO(saved(t)))
    assert ran
    ran.clear()
    with torch.serialization.safe_globals([(Traps, f"{Traps.__module__}.Traps")]):
        torch.load(
            with_pickle(b"\x80\x02c" + f"{Traps.__module__}\nTraps\n".encode() + b")\x81}b.")
        )
    assert ran


@pytest.mark.parametrize("code", sorted(set(range(256)) - set(b"N\x88\x89)]}\x8fJKMG\x85\x86\x87hjqr\x80cR\x81bQ(aesutXU\x8a.")))  # fmt: skip  # noqa: E501
def test_other_instructions_do_not_exist(code):
    refuse(b"\x80\x02" + bytes([code]) + b"\0" * 20 + b".", f"Unsupported operand {code}")


BROKEN = {
    "nothing": b"",
    "no end": b"\x80\x02",
    "only the end": b"\x80\x02.",
    "mark missing": b"\x80\x02t.",
    "stack empty": b"\x80\x02\x85.",
    "memo empty": b"\x80\x02h\x05.",
    "put of nothing": b"\x80\x02q\x05.",
    "call of nothing": b"\x80\x02R.",
    "append to nothing": b"\x80\x02a.",
    "append to a dict": b"\x80\x02}Na.",
    "item of a list": b"\x80\x02]NNs.",
    "odd items": b"\x80\x02}(Nu.",
    "name without end": b"\x80\x02c" + b"a" * 3000,
    "key that is a list": b"\x80\x02}]Ns.",
    "key that is a dict in a tuple": b"\x80\x02}}\x85Ns.",
    "bad utf-8": b"\x80\x02X\x01\0\0\0\xff.",
    "text too long": b"\x80\x02X\xff\xff\xff\xffabc.",
    "protocol": b"\x80\x09N.",
    "persistent id of a number": b"\x80\x02K\x01Q.",
    "persistent id of a module": b"\x80\x02" + text("module") + OD + b"\x86Q.",
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_pickles(name):
    refuse(BROKEN[name])


def storage(numel, kind=b"FloatStorage", key="0", where="cpu"):
    n = (
        b"J" + struct.pack("<i", numel)
        if numel < 2**31
        else b"\x8a\x09" + struct.pack("<q", numel) + b"\0"
    )
    return b"(" + text("storage") + b"ctorch\n" + kind + b"\n" + text(key) + text(where) + n + b"tQ"


def number(n):
    return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)


def tensor(numel=4, offset=0, size=(4,), stride=(1,), extra=b""):
    def dims(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage(numel) + number(offset)
        + dims(size) + dims(stride) + b"\x89" + OD + b")R" + extra + b"tR."
    )  # fmt: skip


RAW = {"0": b"\0" * 16}


def test_the_tensor_of_these_tests():
    assert torch.load(with_pickle(tensor(), RAW)).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "data",
    [
        tensor(size=(5,)), tensor(offset=1), tensor(stride=(2,)), tensor(offset=-1),
        tensor(size=(-4,)), tensor(stride=(-1,), offset=3), tensor(size=(2, 2)),
        tensor(size=(2**62,), stride=(0,)), tensor(size=(2**40, 2**40), stride=(0, 0)),
        tensor(size=(2,), stride=(2**62,)), tensor(offset=2**62), tensor(offset=2**66),
        tensor(size=(1,) * 70, stride=(1,) * 70), tensor(numel=5), tensor(numel=3),
        tensor(numel=2**60), tensor(numel=-4), tensor(extra=b"}" + text("conj") + b"\x88s"),
        tensor(extra=b"}" + text("x") + b"\x88s"), tensor(extra=b"]N" + b"a"),
    ],
)  # fmt: skip
def test_tensors_do_not_leave_their_storage(data):
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        torch.load(with_pickle(data, RAW))
    with pytest.raises((RuntimeError, TypeError, pickle.UnpicklingError)):
        torch.load(with_pickle(data, RAW), weights_only=False)


@pytest.mark.parametrize("where", ["cpu;rm", "cuda:99999999999999999999", "../x", "lazy", ""])
def test_locations(where):
    data = b"\x80\x02" + storage(4, where=where) + b"."
    with pytest.raises(RuntimeError):
        torch.load(with_pickle(data, RAW))


def test_keys_are_no_paths():
    for key in ("../version", "/etc/passwd", "..", "0\0", "a" * 10000):
        data = b"\x80\x02" + storage(4, key=key) + b"."
        with pytest.raises(RuntimeError, match="locating file"):
            torch.load(with_pickle(data, RAW))


def measured(file, **options):
    """(seconds, bytes at the peak) of a load that fails or not."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        torch.load(file, **options)
    except (pickle.UnpicklingError, RuntimeError, EOFError, MemoryError):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return time.perf_counter() - start, peak


def test_deep_nesting_neither_crashes_nor_recurses():
    deep = 200_000
    for body in (
        b"]" * deep + b"a" * (deep - 1),
        b")" + b"\x85" * deep,
        b"}" * deep + b"",
        b"(" * deep,
        OD + b")" + b"\x85" * deep + b"R",
    ):
        seconds, peak = measured(with_pickle(b"\x80\x02" + body + b"."))
        assert seconds < 20 and peak < 200_000_000
    refuse(b"\x80\x02})" + b"\x85" * deep + b"Ns.", "more than")


def test_keys_that_stand_for_exponentially_much():
    body = b"\x80\x02}()q\x00" + b"".join(b"h\x00h\x00\x86q\x00" for _ in range(60)) + b"tNs."
    start = time.perf_counter()
    refuse(body, "more than")
    assert time.perf_counter() - start < 5


def test_lists_that_share_are_no_bomb():
    body = b"\x80\x02]q\x00" + b"".join(b"](h\x00h\x00h\x00h\x00eq\x00" for _ in range(60)) + b"."
    seconds, peak = measured(with_pickle(body))
    assert seconds < 5 and peak < 5_000_000


def test_lengths_are_not_believed():
    for body in (
        b"X\xff\xff\xff\xff",
        b"]r\xff\xff\xff\xff0",
        b"]r\xff\xff\xff\xff",
        b"U\xff",
        b"\x8a\xff",
    ):
        seconds, peak = measured(with_pickle(b"\x80\x02" + body))
        assert seconds < 1 and peak < 5_000_000
    old = saved(torch.ones(2), _use_new_zipfile_serialization=False)
    place = old.index(b"cpu") + len(b"cpuq\x04")
    assert old[place : place + 2] == b"K\x02"
    huge = old[:place] + b"J\xff\xff\xff\x7f" + old[place + 2 :]
    for options in ({}, {"weights_only": False}):
        seconds, peak = measured(io.BytesIO(huge), **options)
        assert seconds < 2 and peak < 5_000_000


def test_a_key_that_is_in_the_file_only_once_is_enough():
    data = b"\x80\x02" + storage(4) + b"0" * 0 + b"."
    assert torch.load(with_pickle(data, RAW)).nbytes() == 16
