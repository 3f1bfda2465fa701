"""Files of torch.save, PyTorch's and torchlab's: each reads the other's, and they are the same,
byte by byte, but for the archive's identity."""

from __future__ import annotations

import importlib
import inspect
import io
import pathlib
import pickle
import warnings
import zipfile
from collections import OrderedDict

import pytest

import torchlab
from torchlab.serialization.names import on_disk

torch = pytest.importorskip("torch")
warnings.filterwarnings("ignore", message=".*(TypedStorage|Sparse|quantiz).*")

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
    "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip
BOTH = [(torch, torchlab), (torchlab, torch)]
OLD = {"_use_new_zipfile_serialization": False}


def saved(t, obj, **options):
    out = io.BytesIO()
    t.save(obj, out, **options)
    return out.getvalue()


def parameter(t, note=None):
    p = t.nn.Parameter(t.arange(3.0))
    if note:
        p.note = note
    return p


def attribute(t):
    x = t.ones(2)
    x.note = [1]
    return x


def network(t):
    net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4), t.nn.ReLU(), t.nn.Linear(4, 2))
    with t.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(t.arange(float(p.numel())).reshape(p.shape) / 7 - i / 2)
    return net


def optimizer(t, name="Adam"):
    net = network(t)
    opt = getattr(t.optim, name)(net.parameters(), lr=0.5)
    net(t.ones(2, 3) * t.tensor([[1.0], [2.0]])).sum().backward()
    opt.step()
    return opt


CASES = {
    **{f"dtype {d}": lambda t, d=d: t.ones(3).to(getattr(t, d)) for d in DTYPES},
    "0-d": lambda t: t.tensor(3.5),
    "requires_grad": lambda t: t.ones(2, requires_grad=True),
    "empty": lambda t: t.empty(0),
    "zero-size": lambda t: t.empty(2, 0, 3),
    "transposed": lambda t: t.arange(6.0).view(2, 3).t(),
    "expanded": lambda t: t.ones(1).expand(5),
    "strided": lambda t: t.arange(10.0)[1::3],
    "channels_last": lambda t: t.zeros(2, 3, 4, 5).to(memory_format=t.channels_last),
    "views": lambda t: (lambda x: [x[1:], x[2:], x])(t.arange(6.0)),
    "meta": lambda t: t.empty(2, 3, device="meta"),
    "parameter": parameter,
    "parameter with attributes": lambda t: parameter(t, {"a": 1}),
    "attributes": attribute,
    "sparse coo": lambda t: t.eye(2).to_sparse(),
    "uncoalesced": lambda t: t.sparse_coo_tensor(t.tensor([[1, 1]]), t.ones(2), (3,)),
    "constants": lambda t: [t.Size([1, 2]), t.float32, t.device("cpu"), t.device("cuda", 1)],
    "layouts": lambda t: [t.strided, t.sparse_csr],
    "plain": lambda t: OrderedDict(
        a=t.ones(2), b={"c": (1, 2.5, None, True, "é", 2**70, -5, b"z")}
    ),
    "many": lambda t: [t.full((i,), float(i)) for i in range(70)],
    "many keys": lambda t: {f"layer.{i}.weight": i for i in range(700)},
    "storage": lambda t: t.ones(2).untyped_storage(),
    "state_dict": lambda t: network(t).state_dict(),
    "module": network,
    "conj": lambda t: t.tensor([1 + 2j, 3j]).conj(),
    "quantized": lambda t: t.quantize_per_tensor(t.arange(4.0), 0.1, 3, t.quint8)[1:],
    "quantized by channel": lambda t: t.quantize_per_channel(
        t.ones(2, 3), t.tensor([0.1, 0.2]).double(), t.tensor([0, 1]), 0, t.qint8
    ),
    "quantization": lambda t: [t.qint8, t.quint8, t.qint32, t.per_tensor_affine],
    "neg": lambda t: t.tensor([1 + 2j, 3j]).conj().imag,
}


def without_identity(data):
    """The bytes, but for the last record's content and checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.infolist()[-1]
        assert info.filename == "archive/.data/serialization_id"
        content = archive.read(info)
    assert len(content) == 40 and content.isdigit()
    return data.replace(content, b"").replace(info.CRC.to_bytes(4, "little"), b"")


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"module"}))  # its attributes have an order
def test_the_same_bytes(name):
    make = CASES[name]
    assert without_identity(saved(torchlab, make(torchlab))) == without_identity(
        saved(torch, make(torch))
    )


@pytest.mark.parametrize("options", [{}, OLD], ids=["zip", "old"])
@pytest.mark.parametrize("name", CASES)
def test_each_reads_the_others(name, options):
    make = CASES[name]
    # PyTorch cannot read untyped storages in the old format, not even its own files.
    newer = (
        name.startswith("dtype uint")
        and name != "dtype uint8"
        or "float8" in name
        or name == "storage"
    )
    for a, b in BOTH[:1] if options and newer else BOTH:
        safe = name != "module"
        back = b.load(io.BytesIO(saved(a, make(a), **options)), weights_only=safe)
        # What PyTorch reads from its own file is the measure (a storage comes back typed).
        expected = b.load(io.BytesIO(saved(b, make(b), **options)), weights_only=safe)
        assert repr(back) == repr(expected) and type(back) is type(expected)
        if isinstance(back, b.Tensor) and back.layout is b.strided:
            assert back.stride() == expected.stride()
            assert back.storage_offset() == expected.storage_offset()
            assert back.is_conj() == expected.is_conj() and back.is_neg() == expected.is_neg()


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("options", [{}, OLD], ids=["zip", "old"])
def test_compressed_sparse(layout, options):
    def make(t):
        dense = t.tensor([[0.0, 2, 0, 0], [1, 0, 0, 3]])
        return getattr(dense, f"to_sparse_{layout}")(*([(1, 2)] if layout[0] == "b" else []))

    for a, b in BOTH:
        back = b.load(io.BytesIO(saved(a, make(a), **options)))
        assert repr(back) == repr(make(b))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_optimizers(name):
    for a, b in BOTH:
        state = b.load(io.BytesIO(saved(a, optimizer(a, name).state_dict())))
        assert repr(state) == repr(optimizer(b, name).state_dict())
        other = b.optim.Adam(network(b).parameters()) if name == "Adam" else optimizer(b, name)
        other.load_state_dict(state)
        whole = b.load(io.BytesIO(saved(a, optimizer(a, name))), weights_only=False)
        assert repr(whole) == repr(optimizer(b, name))
        whole.step()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_whole_modules(protocol):
    for a, b in BOTH:
        net = network(a).eval()
        back = b.load(io.BytesIO(saved(a, net, pickle_protocol=protocol)), weights_only=False)
        assert type(back[0]) is b.nn.Linear
        got, expected = back(b.ones(2, 3)).tolist(), net(a.ones(2, 3)).tolist()
        assert got == [pytest.approx(row, rel=1e-6) for row in expected]
        data = saved(a, a.nn.Linear(1, 1))
        with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules\.linear"):
            b.load(io.BytesIO(data))
        with b.serialization.safe_globals([b.nn.Linear]):
            assert type(b.load(io.BytesIO(data))) is b.nn.Linear


def test_names_of_classes_exist_in_pytorch():
    from torchlab.serialization.names import find, on_disk

    checked = 0
    for ours, theirs in (
        (torchlab.nn, torch.nn),
        (torchlab.optim, torch.optim),
        (torchlab.optim.lr_scheduler, torch.optim.lr_scheduler),
    ):
        for name in dir(ours):
            cls = getattr(ours, name)
            if (
                not inspect.isclass(cls)
                or cls.__name__ != name
                or not inspect.isclass(getattr(theirs, name, None))
            ):
                continue
            module, qualified = on_disk(cls)
            real = getattr(__import__(module, fromlist=["x"]), qualified)
            assert real is getattr(theirs, name), name
            assert find(real.__module__, real.__qualname__) is cls
            checked += 1
    assert checked > 50


def test_generators_go_on():
    for a, b in BOTH:
        g = a.Generator().manual_seed(7)
        a.randn(3, generator=g)
        data = saved(a, g)
        back = b.load(io.BytesIO(data), weights_only=False)
        assert back.initial_seed() == 7
        assert b.rand(5, generator=back).tolist() == a.rand(5, generator=g).tolist()
        with pytest.raises(pickle.UnpicklingError, match="Generator"):
            b.load(io.BytesIO(data))
        with b.serialization.safe_globals([b.Generator]):
            assert b.load(io.BytesIO(data)).initial_seed() == 7


def test_functions_and_classes_by_name():
    for name in (
        "nn.functional.relu",
        "nn.init.xavier_uniform_",
        "relu",
        "Tensor.add",
        "nn.Linear",
    ):
        a, b = torch, torchlab
        for part in name.split("."):
            a, b = getattr(a, part), getattr(b, part)
        back = torchlab.load(io.BytesIO(saved(torch, a)), weights_only=False)
        assert back is b or getattr(back, "__name__", 0) == b.__name__, name
        assert torch.load(io.BytesIO(saved(torchlab, b)), weights_only=False) is a, name


@pytest.mark.parametrize("options", [{}, OLD], ids=["zip", "old"])
def test_views_stay_views_across(options):
    for a, b in BOTH:
        base = a.arange(10.0)
        x, y = b.load(io.BytesIO(saved(a, [base[:6], base[5:8]], **options)))
        x[5] = -1
        assert y[0] == -1 and x.untyped_storage().nbytes() == 40


def test_memory_maps(tmp_path):
    for a, b in BOTH:
        path = tmp_path / f"{a.__name__}.pt"
        a.save({"w": a.arange(100.0), "i": a.arange(7)}, path)
        state = b.load(path, mmap=True)
        assert state["w"].sum() == 4950 and state["i"].tolist() == list(range(7))
        state["w"][0] = 1
        assert b.load(path)["w"][0] == 0


REFUSED = {
    "evil": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00hi\x85R.",
    "eval": b"\x80\x02c__builtin__\neval\nX\x01\x00\x00\x001\x85R.",
    "partial": b"\x80\x02cfunctools\npartial\n.",
    "build a list": b"\x80\x02]}b.",
    "item of a list": b"\x80\x02]K\x01K\x02s.",
    "operand": b"\x80\x04\x95.",
    "module pid": b"\x80\x02X\x04\x00\x00\x00aaaaX\x01\x00\x00\x00bX\x01\x00\x00\x00c\x87Q.",
    "end": b"\x80\x02",
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_same_errors(name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", REFUSED[name])
        archive.writestr("a/version", b"3\n")
        archive.writestr("a/byteorder", b"little")
    texts = []
    for t in (torch, torchlab):
        out.seek(0)
        with pytest.raises((pickle.UnpicklingError, EOFError)) as info:
            t.load(out)
        texts.append((info.type, str(info.value).split("\n")[0]))
    assert texts[0][0] is texts[1][0]
    if texts[0][1]:
        assert texts[0][1] == texts[1][1]


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("data.pkl", None), ("version", None), ("data/0", None), ("data/0", b"1"),
        ("byteorder", b"odd"), ("version", b"999\n"), ("version", b"x\n"), ("constants.pkl", b""),
    ],
)  # fmt: skip
def test_the_same_classes_of_errors(change, value):
    with zipfile.ZipFile(io.BytesIO(saved(torch, torch.ones(2)))) as archive:
        records = {n: archive.read(n) for n in archive.namelist()}
    if value is None:
        del records[f"archive/{change}"]
    else:
        records[f"archive/{change}"] = value
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for n, data in records.items():
            archive.writestr(n, data)
    kinds = []
    for t in (torch, torchlab):
        out.seek(0)
        with pytest.raises((RuntimeError, ValueError)) as info:
            t.load(out)
        kinds.append(info.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("where", ["cuda", "foo", {"cpu": "cuda:0"}, 3])
def test_the_same_errors_of_map_location(where):
    if torch.cuda.is_available() and "cuda" in str(where):
        return
    data = saved(torch, torch.ones(2))
    kinds = []
    for t in (torch, torchlab):
        with pytest.raises((RuntimeError, TypeError)) as info:
            t.load(io.BytesIO(data), map_location=where)
        kinds.append(info.type)
    assert kinds[0] is kinds[1]


def test_scripts_are_recognised(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(1, 1)).save(tmp_path / "s.pt")
    with pytest.raises(RuntimeError, match=r"looks like a TorchScript archive, use\s+torch\.jit"):
        torchlab.load(tmp_path / "s.pt", weights_only=False)
    for t in (torch, torchlab):
        with pytest.raises(RuntimeError, match="TorchScript archives passed to"):
            t.load(tmp_path / "s.pt")


def test_signatures():
    for name in torch.serialization.__all__:
        theirs, ours = getattr(torch.serialization, name), getattr(torchlab.serialization, name)
        if not inspect.isfunction(theirs):
            continue
        a, b = (list(inspect.signature(f).parameters.values()) for f in (theirs, ours))
        assert [(p.name, p.kind) for p in a] == [(p.name, p.kind) for p in b], name


def test_checksums_that_are_left_out():
    for t in (torch, torchlab):
        t.serialization.set_crc32_options(False)
    try:
        files = [saved(t, t.arange(3.0)) for t in (torch, torchlab)]
    finally:
        for t in (torch, torchlab):
            t.serialization.set_crc32_options(True)
    for (_, b), data in zip(BOTH, files, strict=True):
        assert b.load(io.BytesIO(data)).tolist() == [0, 1, 2]
    infos = [zipfile.ZipFile(io.BytesIO(f)).infolist() for f in files]
    assert [[i.CRC for i in info] for info in infos] == [[0] * len(infos[0])] * 2


MODELS = {
    "convolutional": (
        lambda t: t.nn.Sequential(
            t.nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), t.nn.BatchNorm2d(8), t.nn.ReLU(),
            t.nn.Conv2d(8, 8, 3, groups=4), t.nn.GroupNorm(2, 8), t.nn.AdaptiveAvgPool2d(1),
            t.nn.Flatten(), t.nn.Linear(8, 5),
        ),
        lambda t: (t.arange(2 * 3 * 81.0).reshape(2, 3, 9, 9).sin(),),
    ),
    "recurrent": (
        lambda t: t.nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
        lambda t: (t.arange(24.0).reshape(2, 4, 3).cos(),),
    ),
    "transformer": (
        lambda t: t.nn.TransformerEncoder(
            t.nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True), 2,
            enable_nested_tensor=False,
        ),
        lambda t: (t.arange(48.0).reshape(2, 3, 8).sin(),),
    ),
    "weight norm": (
        lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 2)),
        lambda t: (t.arange(6.0).reshape(2, 3),),
    ),
    "embedding": (
        lambda t: t.nn.Sequential(t.nn.Embedding(7, 4, padding_idx=0), t.nn.LayerNorm(4)),
        lambda t: (t.tensor([[0, 1, 6]]),),
    ),
}  # fmt: skip


def _loss(t, out):
    """All elements count, each in its own way, so that no gradient is near zero."""
    flat = (out[0] if isinstance(out, tuple) else out).flatten()
    return (flat * t.arange(1.0, 1 + len(flat)).cos()).sum()


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
@pytest.mark.parametrize("name", MODELS)
def test_checkpoints_of_models(name, options, tmp_path):
    """A training's checkpoint: made by one, continued by the other, with the same results."""
    make, inputs = MODELS[name]
    for a, b in BOTH:
        a.manual_seed(0)
        model = make(a)
        sgd = a.optim.AdamW(model.parameters(), lr=0.01)
        out = model(*inputs(a))
        _loss(a, out).backward()
        sgd.step()
        path = tmp_path / f"{a.__name__}.pt"
        a.save({"model": model.state_dict(), "optimizer": sgd.state_dict(), "epoch": 7}, path,
               **options)  # fmt: skip
        found = b.load(path)  # weights_only
        other = make(b)
        assert other.load_state_dict(found["model"]) and found["epoch"] == 7
        steps = []
        adam = b.optim.AdamW(other.parameters(), lr=0.5)
        adam.load_state_dict(found["optimizer"])
        for t, m, o in ((a, model, sgd), (b, other, adam)):
            o.zero_grad()
            out = m(*inputs(t))
            loss = _loss(t, out)
            loss.backward()
            o.step()
            after = m.eval()(*inputs(t))
            after = after[0] if isinstance(after, tuple) else after
            steps.append((loss.item(), after.flatten().tolist()))
        assert steps[0][0] == pytest.approx(steps[1][0], rel=1e-5)
        assert steps[0][1] == pytest.approx(steps[1][1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("where", ["nn", "distributions.transforms", "optim", "optim.lr_scheduler"])
def test_classes_are_named_as_pytorch_names_them(where: str) -> None:
    theirs = importlib.import_module(f"torch.{where}")
    ours = importlib.import_module(f"torchlab.{where}")
    for name, cls in vars(theirs).items():
        if isinstance(cls, type) and not name.startswith("_") and hasattr(ours, name):
            if cls.__module__.startswith("torch."):
                assert on_disk(getattr(ours, name)) == (cls.__module__, cls.__qualname__), name


def test_whole_modules_with_the_classes_that_the_reader_allows(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "whole.pth"
    torchlab.manual_seed(0)
    model = torchlab.nn.Sequential(torchlab.nn.PReLU(), torchlab.nn.ConvTranspose1d(1, 1, 2))
    torchlab.save(model, path)
    nn = torch.nn.modules
    classes = [nn.container.Sequential, nn.activation.PReLU, nn.conv.ConvTranspose1d]
    with torch.serialization.safe_globals(classes):
        read = torch.load(path)
    x = [[1.0, -2.0, 3.0]]
    assert read(torch.tensor(x)).tolist() == model(torchlab.tensor(x)).tolist()
