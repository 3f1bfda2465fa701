"""What goes through a file comes back the same: values, types, shared memory, attributes."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections import Counter, OrderedDict

import numpy as np
import pytest

import torchlab as torch
from tests.serialization.tools import packed, parts, saved

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
    "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


def trip(obj, weights_only=True, **options):
    return torch.load(io.BytesIO(saved(obj, **options)), weights_only=weights_only)


def same(a, b):
    assert type(a) is type(b)
    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    assert a.storage_offset() == b.storage_offset() and a.requires_grad == b.requires_grad
    assert np.array_equal(np.asarray(a.detach()._a), np.asarray(b.detach()._a))


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name, old):
    t = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    same(t, trip(t, _use_new_zipfile_serialization=not old))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(3.0),
        lambda: torch.empty(0),
        lambda: torch.empty(2, 0, 3),
        lambda: torch.arange(12.0).view(3, 4).t(),
        lambda: torch.arange(12.0)[2::3],
        lambda: torch.ones(1).expand(5),
        lambda: torch.ones(2, 1, 3).expand(2, 4, 3)[1:],
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_geometry(make, old):
    t = make()
    same(t, trip(t, _use_new_zipfile_serialization=not old))


@pytest.mark.parametrize("old", [False, True])
def test_views_stay_views(old):
    base = torch.arange(10.0)
    a, b, c = trip([base[:6], base[5:8], base.t()], _use_new_zipfile_serialization=not old)
    a[5] = -1
    assert b[0] == -1 and c[5] == -1
    assert a.untyped_storage().nbytes() == 40
    assert a.untyped_storage().data_ptr() == c.untyped_storage().data_ptr()


def test_the_same_object_stays_one_object():
    t = torch.ones(2)
    a, b = trip([t, t])
    assert a is b


def test_a_write_into_a_loaded_tensor_counts():
    t = trip(torch.ones(3))
    t.add_(1)
    assert t._version == 1 and t.tolist() == [2, 2, 2]


def test_a_tensor_with_a_history_comes_back_as_a_leaf():
    t = trip(torch.ones(2, requires_grad=True) * 2)
    assert t.is_leaf and t.requires_grad and t.grad_fn is None


def test_numpy_memory_is_saved():
    a = np.arange(24.0).reshape(4, 6)[:, ::2]
    assert np.array_equal(trip(torch.from_numpy(a)).numpy(), a)


@pytest.mark.parametrize(
    "obj",
    [
        None, True, 0, -5, 255, 256, 65536, -(2**31), 2**31, 2**70, -(2**70), 1.5, "", "é\n\ud800",
        b"ab\xff", bytearray(b"xy"), 1j, (), (1,), (1, 2), (1, 2, 3, 4), [], [1, [2, [3]]],
        {}, {"a": {"b": (1,)}}, {1, 2}, OrderedDict(a=1, b=2), Counter("aab"), {(1, "x"): 2},
        torch.Size([2, 3]), torch.float32, torch.bool, torch.bfloat16, torch.strided,
        torch.sparse_csr, torch.device("cpu"), torch.device("cuda", 1), torch.device("meta"),
    ],
)  # fmt: skip
def test_plain_values(obj):
    back = trip(obj)
    assert back == obj and type(back) is type(obj)


def test_many_values_in_one_container():
    obj = {f"k{i}": list(range(i % 7)) for i in range(3000)}
    assert trip(obj) == obj


def test_parameters():
    p = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    q = torch.nn.Parameter(torch.ones(2))
    q.note = {"lr": 0.5}
    p2, q2 = trip([p, q])
    assert type(p2) is torch.nn.Parameter and not p2.requires_grad
    assert q2.requires_grad and q2.note == {"lr": 0.5}


def test_attributes_of_tensors():
    t = torch.ones(2)
    t.label = [1, 2]
    assert trip(t).label == [1, 2]


class Marked(torch.Tensor):
    pass


def test_subclasses_have_to_be_allowed():
    t = torch.ones(2).as_subclass(Marked)
    t.label = 7
    data = saved(t)
    with pytest.raises(pickle.UnpicklingError, match="Marked was not an allowed global"):
        torch.load(io.BytesIO(data))
    with torch.serialization.safe_globals([Marked]):
        back = torch.load(io.BytesIO(data))
    assert type(back) is Marked and back.label == 7
    back = torch.load(io.BytesIO(data), weights_only=False)
    assert type(back) is Marked and back.tolist() == [1, 1]


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("old", [False, True])
def test_sparse(layout, old):
    dense = torch.tensor([[0.0, 2, 0, 0], [1, 0, 0, 3]])
    block = {"blocksize": (1, 2)} if layout[0] == "b" else {}
    t = dense.to_sparse(**block, layout=getattr(torch, f"sparse_{layout}"))
    back = trip(t, _use_new_zipfile_serialization=not old)
    assert back.layout is t.layout and torch.equal(back.to_dense(), dense)


def test_uncoalesced_sparse():
    t = torch.sparse_coo_tensor([[1, 1, 0]], [1.0, 2, 3], (3,))
    back = trip(t)
    assert not back.is_coalesced() and back._nnz() == 3
    assert trip(t.coalesce()).is_coalesced()


def test_conjugates_keep_their_bit():
    t = torch.tensor([1 + 2j, 3 - 1j])
    a, b = trip([t, t.conj()])
    assert a.is_conj() is False and b.is_conj() is t.conj().is_conj()
    assert b.tolist() == [1 - 2j, 3 + 1j]
    if b.is_conj():
        a[0] = 5j
        assert b[0].item() == -5j


def test_negatives_keep_their_bit():
    t = torch.tensor([1 + 2j, 3 - 1j]).conj().imag
    assert trip(t).tolist() == [-2, 1] and trip(t).is_neg() == t.is_neg()


@pytest.mark.parametrize("old", [False, True])
def test_quantized(old):
    for t in (
        torch.quantize_per_tensor(torch.arange(6.0).view(2, 3), 0.1, 3, torch.quint8).t(),
        torch.quantize_per_channel(
            torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
        ),
    ):
        back = trip(t, _use_new_zipfile_serialization=not old)
        assert back.dtype is t.dtype and back.stride() == t.stride() and torch.equal(back, t)


def test_meta():
    t = torch.empty(2, 3, device="meta").t()
    back = trip(t)
    assert back.is_meta and back.shape == (3, 2) and back.stride() == (1, 3)


def test_state_dict_and_optimizer():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    opt = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.randn(5, 3)).sum().backward()
    opt.step()
    state = trip({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": 3})
    other = copy.deepcopy(net)
    for p in other.parameters():
        p.data.zero_()
    other.load_state_dict(state["net"])
    assert state["net"]._metadata == net.state_dict()._metadata
    x = torch.randn(5, 3)
    assert torch.equal(net.eval()(x), other.eval()(x))
    second = torch.optim.Adam(other.parameters())
    second.load_state_dict(state["opt"])
    assert second.param_groups[0]["lr"] == 0.1 and state["epoch"] == 3


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_whole_modules(protocol):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    back = trip(net, weights_only=False, pickle_protocol=protocol)
    x = torch.randn(2, 3)
    assert torch.equal(net(x), back(x))
    handle = back.register_forward_hook(lambda m, a, r: r * 0)
    assert back(x).sum() == 0
    handle.remove()
    assert torch.equal(net(x), back(x))


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages():
    t = torch.arange(3.0)
    back = trip([t.untyped_storage(), torch.storage.TypedStorage([1.0, 1.0])])
    assert back[0].nbytes() == 12 and back[1].tolist() == [1, 1]


def test_one_storage_as_two_types_is_refused():
    t = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        saved([t, t.view(torch.int32)])


def test_a_view_of_a_large_storage_warns():
    big = torch.zeros(100_000)
    with pytest.warns(UserWarning, match=r"clone\(\)"):
        n = len(saved(big[:10]))
    assert n > 400_000
    assert len(saved(big[:10].clone())) < 4000


def test_old_format_one_after_the_other():
    out = io.BytesIO()
    for i in range(3):
        torch.save({"i": torch.tensor(i)}, out, _use_new_zipfile_serialization=False)
    out.seek(0)
    assert [torch.load(out)["i"].item() for _ in range(3)] == [0, 1, 2]


def test_an_archive_inside_a_larger_file():
    file = io.BytesIO(b"head" + saved(torch.ones(3)))
    file.seek(4)
    assert torch.load(file).tolist() == [1, 1, 1]


class OnlyWrites:
    def __init__(self):
        self.data = b""

    def write(self, part):
        self.data += bytes(part)
        return len(part)

    def flush(self):
        pass


class OnlyReads:
    def __init__(self, data):
        self._file = io.BytesIO(data)
        self.read, self.readline = self._file.read, self._file.readline
        self.seek, self.tell = self._file.seek, self._file.tell


@pytest.mark.parametrize("old", [False, True])
def test_objects_that_are_like_files(old):
    out = OnlyWrites()
    torch.save(torch.arange(5), out, _use_new_zipfile_serialization=not old)
    assert torch.load(OnlyReads(out.data)).tolist() == [0, 1, 2, 3, 4]


def test_another_pickle_module():
    cloudpickle = pytest.importorskip("cloudpickle")
    obj = {"f": lambda x: x + 1, "t": torch.ones(2)}
    data = saved(obj, pickle_module=cloudpickle)
    back = torch.load(io.BytesIO(data), weights_only=False)
    assert back["f"](1) == 2 and back["t"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(io.BytesIO(data), pickle_module=pickle, weights_only=True)


def test_byte_order():
    records = parts(saved(torch.tensor([1, 256])))
    records["archive/byteorder"] = b"big" if sys.byteorder == "little" else b"little"
    records["archive/data/0"] = np.array([1, 256]).byteswap().tobytes()
    assert torch.load(packed(records)).tolist() == [1, 256]
    del records["archive/byteorder"]
    torch.serialization.set_default_load_endianness(
        torch.serialization.LoadEndianness.BIG
        if sys.byteorder == "little"
        else torch.serialization.LoadEndianness.LITTLE
    )
    try:
        assert torch.load(packed(records)).tolist() == [1, 256]
    finally:
        torch.serialization.set_default_load_endianness(None)


@pytest.mark.parametrize("protocol", [2, 5])
def test_plain_pickles_and_copies(protocol):
    base = torch.arange(6.0)
    for t in (
        base[1:],
        base.view(2, 3).t(),
        torch.nn.Parameter(base.clone()),
        torch.empty(2, 3, device="meta").t(),
        torch.ones(2, dtype=torch.bfloat16),
        base.to("sim"),
    ):
        for back in (pickle.loads(pickle.dumps(t, protocol)), copy.copy(t), copy.deepcopy(t)):
            assert type(back) is type(t) and repr(back) == repr(t) and back.stride() == t.stride()
    a, b = pickle.loads(pickle.dumps([base, base[2:]], protocol))
    a[2] = 9
    assert b[0] == 9
    assert torch.empty(4, device="meta")[1:].storage_offset() == 1
