"""Recurrent networks, attention and Transformers as modules, against real PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")
RNN, LSTM, CELLS = ("RNN", "GRU"), ("LSTM",), ("RNNCell", "GRUCell", "LSTMCell")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def made(name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The module on either side, in float64, from the same seed."""
    torch.manual_seed(3)
    torchlab.manual_seed(3)
    theirs = getattr(torch.nn, name)(*args, **kwargs)
    ours = getattr(torchlab.nn, name)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    for (n, a), (m, b) in zip(theirs.state_dict().items(), ours.state_dict().items(), strict=True):
        assert n == m
        np.testing.assert_array_equal(b.numpy(), a.numpy(), err_msg=n)
    return theirs.double(), ours.double()


def both(*arrays: Any) -> tuple[list[Any], list[Any]]:
    return [torch.tensor(a) for a in arrays], [torchlab.tensor(a) for a in arrays]


def flat(x: Any) -> list[Any]:
    if x is None:
        return []
    return [t for part in x for t in flat(part)] if isinstance(x, (tuple, list)) else [x]


def same(theirs: Any, ours: Any, strides: bool = True) -> None:
    a, b = flat(theirs), flat(ours)
    assert len(a) == len(b)
    for t, o in zip(a, b, strict=True):
        np.testing.assert_allclose(o.detach().numpy(), t.detach().numpy(), rtol=1e-9, atol=1e-11)
        if strides:
            assert tuple(o.stride()) == t.stride()


def same_gradients(theirs: Any, ours: Any, results: tuple[Any, Any]) -> None:
    for r in results:
        sum((t * t).sum() for t in flat(r) if t.is_floating_point()).backward()
    for (n, a), b in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=n)


@pytest.mark.parametrize("name", RNN + LSTM)
@pytest.mark.parametrize("options", [
    {}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True, "bias": False},
    {"proj_size": 2, "num_layers": 2, "bidirectional": True}, {"nonlinearity": "relu"},
])  # fmt: skip
def test_recurrent(name: str, options: dict[str, Any]) -> None:
    if ("proj_size" in options and name != "LSTM") or ("nonlinearity" in options and name != "RNN"):
        return
    rng = np.random.default_rng(0)
    theirs, ours = made(name, 3, 4, **options)
    for shape in ((5, 2, 3), (5, 3)):
        (a,), (b,) = both(rng.normal(size=shape))
        results = theirs(a), ours(b)
        same(*results)
        same_gradients(theirs, ours, results)
        again = theirs(a, results[0][1]), ours(b, results[1][1])
        same(*again)
    assert [[w.shape for w in line] for line in ours.all_weights] == [
        [tuple(w.shape) for w in line] for line in theirs.all_weights
    ]


@pytest.mark.parametrize("name", RNN + LSTM)
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed(name: str, enforce_sorted: bool) -> None:
    rng = np.random.default_rng(1)
    lengths = [5, 3, 3, 1] if enforce_sorted else [3, 1, 5, 3]
    arrays = [rng.normal(size=(n, 3)) for n in lengths]
    theirs, ours = made(name, 3, 4, num_layers=2, bidirectional=True)
    found = []
    for lib, module, tensors in zip((torch, torchlab), (theirs, ours), both(*arrays)):
        r = lib.nn.utils.rnn
        packed = r.pack_sequence(tensors, enforce_sorted=enforce_sorted)
        out, state = module(packed)
        _, second = module(packed, state)
        unpacked = r.unpack_sequence(out)
        padded = r.pad_packed_sequence(out, batch_first=True, padding_value=7.0, total_length=6)
        fields = [packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices]
        found.append((fields, out.data, state, second, list(unpacked), list(padded)))
    same(*found)
    same_gradients(theirs, ours, (found[0][1], found[1][1]))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded(batch_first: bool, side: str) -> None:
    rng = np.random.default_rng(2)
    found = []
    for lib, tensors in zip(
        (torch, torchlab), both(*(rng.normal(size=(n, 2)) for n in (2, 4, 1))), strict=True
    ):
        r = lib.nn.utils.rnn
        padded = r.pad_sequence(tensors, batch_first, 1.5, side)
        parts = r.unpad_sequence(padded.clone(), lib.tensor([2, 4, 1]), batch_first)
        packed = r.pack_padded_sequence(padded, [2, 4, 1], batch_first, enforce_sorted=False)
        order = r.invert_permutation(lib.tensor([2, 0, 1]))
        found.append((padded, list(parts), [*packed], [*packed.float()], order))
    same(*found)


@pytest.mark.parametrize("name", CELLS)
def test_cells(name: str) -> None:
    rng = np.random.default_rng(4)
    theirs, ours = made(name, 3, 4)
    for shape in ((2, 3), (3,)):
        (a,), (b,) = both(rng.normal(size=shape))
        results = theirs(a), ours(b)
        same(*results)
        same(theirs(a, results[0]), ours(b, results[1]))
        same_gradients(theirs, ours, results)


MASKS = [None, "padding", "all", "mask", "3d", "float", "both"]


def masks(kind: str | None, n: int, heads: int, length: int) -> dict[str, Any]:
    padding = np.zeros((n, length), bool)
    padding[0, -1] = True
    mask = np.triu(np.ones((length, length), bool), 1)
    if kind is None:
        return {}
    return {
        "padding": {"key_padding_mask": padding},
        "all": {"key_padding_mask": padding | np.array([[True], [False]])},
        "mask": {"attn_mask": mask},
        "3d": {"attn_mask": np.broadcast_to(mask, (n * heads, length, length)).copy()},
        "float": {"attn_mask": np.where(mask, -1.5, 0.25)},
        "both": {"key_padding_mask": padding, "attn_mask": mask},
    }[kind]  # type: ignore[return-value]


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("options", [
    {}, {"batch_first": True}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": 3, "vdim": 5},
])  # fmt: skip
def test_attention(kind: str | None, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    theirs, ours = made("MultiheadAttention", 4, 2, **options)
    shape = (2, 3) if options.get("batch_first") else (3, 2)
    q = rng.normal(size=(*shape, 4))
    given = masks(kind, 2, 2, 3)
    if "kdim" in options:
        arrays = (q, rng.normal(size=(*shape, 3)), rng.normal(size=(*shape, 5)))
    else:
        arrays = (q,)
    for training in (True, False):
        for grad in (True, False):
            for weights in ({"need_weights": False}, {}, {"average_attn_weights": False}):
                results = []
                for lib, module, tensors in zip((torch, torchlab), (theirs, ours), both(*arrays)):
                    module.train(training)
                    extra = {k: lib.tensor(v) for k, v in given.items()}
                    qkv = tensors if len(tensors) == 3 else tensors * 3
                    with lib.set_grad_enabled(grad):
                        results.append(module(*qkv, **extra, **weights))
                same(*results)
                if grad and kind != "all":
                    same_gradients(theirs, ours, tuple(results))  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [
    {}, {"batch_first": True}, {"batch_first": True, "norm_first": True},
    {"activation": "gelu", "batch_first": True}, {"bias": False},
])  # fmt: skip
@pytest.mark.parametrize("kind", MASKS)
def test_encoder(kind: str | None, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(6)
    libs = (torch, torchlab)
    layers = made("TransformerEncoderLayer", 4, 2, 8, dropout=0.0, **options)
    stacks = [lib.nn.TransformerEncoder(m, 2) for lib, m in zip(libs, layers, strict=True)]
    shape = (2, 3) if options.get("batch_first") else (3, 2)
    x = rng.normal(size=(*shape, 4))
    given = masks(kind, 2, 2, 3)
    for modules, mask in ((layers, "src_mask"), (stacks, "mask")):
        for training in (True, False):
            for grad in (True, False):
                if kind == "float" and not (training or grad):
                    continue  # PyTorch's fused kernel takes any number but 0 for "may not look"
                results = []
                for lib, m, (t,) in zip(libs, modules, both(x), strict=True):
                    extra = {
                        {"attn_mask": mask}.get(k, f"src_{k}"): lib.tensor(v)
                        for k, v in given.items()
                    }
                    m.train(training)
                    with lib.set_grad_enabled(grad):
                        results.append(m(t, **extra))
                same(*results)


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "norm_first": True}])
def test_transformer(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    theirs, ours = made("Transformer", 4, 2, 2, 2, 8, dropout=0.0, **options)
    shape = (2, 3) if options.get("batch_first") else (3, 2)
    arrays = rng.normal(size=(*shape, 4)), rng.normal(size=(*shape, 4))
    results = []
    for lib, m, tensors in zip((torch, torchlab), (theirs, ours), both(*arrays), strict=True):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(3, dtype=lib.float64)
        results.append(m(*tensors, tgt_mask=mask, src_mask=mask))
    same(*results)
    same_gradients(theirs, ours, tuple(results))  # type: ignore[arg-type]
