"""Page-locked memory of the simulated accelerator, and of a stand-in for CuPy."""

from __future__ import annotations

import copy
import mmap
import pickle
import types

import numpy as np
import pytest

import torchlab as torch
from torchlab._core.backends import accelerator, pinned


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("TORCHLAB_ACCELERATOR", "sim")


@pytest.fixture
def none(monkeypatch):
    monkeypatch.setattr(accelerator, "kind", lambda: None)


# ---- tensors ------------------------------------------------------------------------------------


def test_a_copy_with_the_same_strides_that_begins_at_a_page() -> None:
    x = torch.arange(12.0).reshape(3, 4).t()
    y = x.pin_memory()
    assert y.is_pinned() and not x.is_pinned()
    assert torch.equal(x, y) and y.stride() == (1, 4) and y.data_ptr() % mmap.PAGESIZE == 0
    assert y.pin_memory() is y and torch._pin_memory(y) is not y
    gaps = torch.arange(6.0)[::2].pin_memory()
    assert gaps.stride() == (2,) and gaps.tolist() == [0, 2, 4]
    assert gaps.untyped_storage().nbytes() == 20
    for dtype in (torch.bfloat16, torch.bool, torch.complex128, torch.float8_e5m2):
        z = torch.ones(3).to(dtype)
        assert torch.equal(z.pin_memory().view(torch.uint8), z.view(torch.uint8))
    assert torch.tensor([1j]).conj().pin_memory().tolist() == [-1j]
    assert not torch.empty(0).pin_memory().is_pinned()


def test_what_shares_the_memory_is_pinned_too() -> None:
    x = torch.ones(3, 4, pin_memory=True)
    views = [x[1:], x.t(), x.expand(2, 3, 4), x.detach(), x.data, x.view(torch.int32), x[:0]]
    views += [x.as_strided((2,), (3,)), torch.nn.Parameter(x), torch.from_numpy(x.numpy())]
    views += [torch.frombuffer(memoryview(x.numpy()).cast("B"), dtype=torch.float32)]
    views += [torch.empty(0).set_(x.untyped_storage())]
    assert all(v.is_pinned() for v in views)
    copies = [x.clone(), x + 1, torch.empty_like(x), x.new_ones(2), copy.deepcopy(x)]
    copies += [pickle.loads(pickle.dumps(x)), x.double(), x.cpu() * 1]
    assert not any(c.is_pinned() for c in copies)
    assert not torch.ones(3, 4, pin_memory=True).share_memory_().is_pinned()


def test_it_grows_as_what_it_is() -> None:
    x = torch.ones(2, pin_memory=True)
    y = x[:1]
    assert x.resize_(10_000).is_pinned() and y.is_pinned() and x[:2].tolist() == [1, 1]
    storage = torch.ones(2, pin_memory=True).untyped_storage()
    storage.resize_(10_000)
    assert storage.is_pinned()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        torch.ones(2).pin_memory().resize_(10)


def test_gradients_pass_through() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.pin_memory()
    assert type(y.grad_fn).__name__ == "PinMemoryBackward0" and not y.is_leaf
    (y * torch.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [1, 2]
    assert torch.func.grad(lambda t: (t.pin_memory() ** 2).sum())(torch.ones(2)).tolist() == [2, 2]
    z = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch._pin_memory, (z,))
    assert torch.autograd.gradgradcheck(lambda t: torch._pin_memory(t) ** 3, (z,))
    assert torch.ones(2, requires_grad=True, pin_memory=True).is_leaf
    p = torch.nn.Parameter(torch.ones(2)).pin_memory()
    assert type(p) is torch.Tensor and p.requires_grad


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: torch.ones(2, device="sim").pin_memory(), "cannot pin 'simFloatType' only dense"),
        (lambda: torch.ones(2, device="meta").pin_memory(), "'MetaFloatType' only dense CPU"),
        (lambda: torch.ones(2, device="sim", pin_memory=True), "Only dense CPU tensors"),
        (lambda: torch.zeros(2, layout=torch.sparse_coo, pin_memory=True), "Only dense CPU tensor"),
        (lambda: torch.ones(2, device="sim").new_zeros(2, pin_memory=True), "Only dense CPU"),
        (lambda: torch.ones(1).expand(3).pin_memory(), "more than one element of the written-to"),
        (lambda: torch.tensor(torch.ones(2), pin_memory=True), "Can't pin .*from a variable"),
        (lambda: torch.tensor(np.ones(2), pin_memory=True), "Can't pin .*from numpy"),
        (lambda: torch.from_file("none", size=2, pin_memory=True), "from a file cannot be pinned"),
        (lambda: torch.ones(2).pin_memory("cpu"), "CPU device type not an accelerator"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cannot_be_pinned(make, says) -> None:
    with pytest.raises(RuntimeError, match=says):
        make()


def test_the_device_is_deprecated() -> None:
    x = torch.ones(2, pin_memory=True)
    for ask, answer in ((x.is_pinned, True), (torch.ones(2).is_pinned, False)):
        with pytest.warns(DeprecationWarning, match=r"'device' of Tensor.is_pinned\(\) is depr"):
            assert ask("sim") is answer
    with pytest.warns(DeprecationWarning, match="is_pinned"):
        assert not x.is_pinned("cpu")
    with pytest.warns(DeprecationWarning, match=r"'device' of Tensor.pin_memory\(\) is depr"):
        assert torch.ones(2).pin_memory("sim").is_pinned()


MAKERS = {
    "zeros": lambda t, **k: t.zeros(2, **k),
    "ones": lambda t, **k: t.ones((2, 2), **k),
    "full": lambda t, **k: t.full((2,), 3, **k),
    "tensor": lambda t, **k: t.tensor([[1.0, 2.0]], **k),
    "scalar_tensor": lambda t, **k: t.scalar_tensor(2, **k),
    "rand": lambda t, **k: t.rand(3, **k),
    "randn": lambda t, **k: t.randn(3, dtype=t.complex64, **k),
    "randint": lambda t, **k: t.randint(9, (3,), **k),
    "randperm": lambda t, **k: t.randperm(5, **k),
    "normal": lambda t, **k: t.normal(1.0, 2.0, (3,), **k),
    "arange": lambda t, **k: t.arange(5, **k),
    "linspace": lambda t, **k: t.linspace(0, 1, 3, **k),
    "logspace": lambda t, **k: t.logspace(0, 1, 3, **k),
    "eye": lambda t, **k: t.eye(2, 3, **k),
    "hann_window": lambda t, **k: t.hann_window(4, **k),
    "tril_indices": lambda t, **k: t.tril_indices(2, 3, **k),
    "fftfreq": lambda t, **k: t.fft.fftfreq(4, **k),
    "zeros_like": lambda t, **k: t.zeros_like(t.ones(2, 3).t(), **k),
    "full_like": lambda t, **k: t.full_like(t.ones(2), 3, **k),
    "rand_like": lambda t, **k: t.rand_like(t.ones(2), **k),
    "randint_like": lambda t, **k: t.randint_like(t.ones(2), 9, **k),
    "new_zeros": lambda t, **k: t.ones(2).new_zeros(3, **k),
    "new_ones": lambda t, **k: t.ones(2).new_ones(3, **k),
    "new_full": lambda t, **k: t.ones(2).new_full((3,), 2, **k),
}
EMPTY = {
    "empty": lambda t, **k: t.empty(1, 2, 3, 4, memory_format=t.channels_last, **k),
    "empty_strided": lambda t, **k: t.empty_strided((2, 3), (1, 4), **k),
    "empty_permuted": lambda t, **k: t.empty_permuted((2, 3), (1, 0), **k),
    "empty_like": lambda t, **k: t.empty_like(t.ones(2, 3).t(), **k),
    "new_empty": lambda t, **k: t.ones(2).new_empty(3, **k),
    "new_empty_strided": lambda t, **k: t.ones(2).new_empty_strided((3,), (2,), **k),
}


@pytest.mark.parametrize("name", [*MAKERS, *EMPTY])
def test_makers(name) -> None:
    make = (MAKERS | EMPTY)[name]
    torch.manual_seed(3)
    plain = make(torch)
    torch.manual_seed(3)
    found = make(torch, pin_memory=True)
    assert found.is_pinned() and not plain.is_pinned() and found.untyped_storage().is_pinned()
    assert found.stride() == plain.stride() and found.dtype is plain.dtype
    assert name in EMPTY or torch.equal(found, plain)
    if found.is_floating_point():
        leaf = make(torch, pin_memory=True, requires_grad=True)
        assert leaf.is_pinned() and leaf.is_leaf and leaf.requires_grad
    if "like" not in name and "new" not in name:
        meta = make(torch, pin_memory=True, device="meta")
        assert meta.device.type == "meta" and not meta.is_pinned()
    assert not make(torch, pin_memory=False).is_pinned()


def test_out_stays_where_it_is() -> None:
    out = torch.zeros(2)
    assert torch.ones(2, out=out, pin_memory=True) is out and not out.is_pinned()
    assert torch.empty_like(torch.ones(2, device="meta"), pin_memory=True).is_meta


def test_sparse_tensors() -> None:
    index, values = torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0])
    x = torch.sparse_coo_tensor(index, values, (3,), requires_grad=True)
    y = x.pin_memory()
    assert y.is_pinned() and y.pin_memory() is y and not x.is_pinned()
    assert y._indices().is_pinned() and y._values().is_pinned()
    assert type(y.grad_fn).__name__ == "PinMemoryBackward0"
    y.to_dense().sum().backward()
    assert x.grad.to_dense().tolist() in ([1, 0, 1], [1, 1, 1])
    made = torch.sparse_coo_tensor(index, values, (3,), pin_memory=True, requires_grad=True)
    assert made.is_pinned() and made.is_leaf and made.to_dense().tolist() == [1, 0, 2]
    rows = torch.sparse_csr_tensor([0, 1], [0], [3.0], (1, 1), pin_memory=True)
    assert rows.is_pinned() and rows.crow_indices().is_pinned() and rows.col_indices().is_pinned()
    assert torch.eye(2).to_sparse_csc().pin_memory().to_dense().tolist() == [[1, 0], [0, 1]]


def test_quantized_and_pending_tensors() -> None:
    x = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8)
    assert not x.is_pinned()
    with pytest.raises(RuntimeError):  # PyTorch's cannot be copied there
        x.pin_memory()
    y = torch.ones(2, dtype=torch.complex64)
    assert not y.conj().is_pinned() and y.pin_memory().conj().is_pinned()
    assert y.pin_memory().conj().imag.is_pinned()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages() -> None:
    x = torch.arange(3.0)
    storage = x.untyped_storage()
    locked = storage.pin_memory()
    assert locked.is_pinned() and not storage.is_pinned() and locked.pin_memory() is locked
    assert locked.tolist() == storage.tolist()
    typed = x.storage().pin_memory()
    assert typed.is_pinned() and typed.dtype is torch.float32 and typed.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="cannot pin 'torch.storage.UntypedStorage' only CPU mem"):
        torch.UntypedStorage(3, device="meta").pin_memory()


def test_packed_sequences() -> None:
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(1), torch.ones(2)], enforce_sorted=False)
    locked = packed.pin_memory()
    assert locked.is_pinned() and not packed.is_pinned()
    assert locked.sorted_indices.is_pinned() and locked.unsorted_indices.is_pinned()


def test_saved_tensors() -> None:
    seen = []
    x = torch.ones(2, device="sim", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = x * x
    packing = torch.autograd.graph.save_on_cpu(pin_memory=True)
    seen.append(packing.pack_hook(x)[1])
    y.sum().backward()
    assert x.grad.tolist() == [2, 2] and seen[0].is_pinned() and seen[0].device.type == "cpu"


# ---- without an accelerator ---------------------------------------------------------------------


@pytest.mark.usefixtures("none")
def test_without_an_accelerator() -> None:
    x = torch.ones(2)
    coo = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (2,))
    index, values = coo._indices(), coo._values()
    pins = [x.pin_memory, coo.pin_memory, x.untyped_storage().pin_memory]
    pins += [torch.quantize_per_tensor(x, 1.0, 0, torch.quint8).pin_memory]
    pins += [lambda: torch.sparse_coo_tensor(index, values, (2,), pin_memory=True)]
    for pin in pins:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is av"):
            pin()
    for make in (MAKERS | EMPTY).values():
        torch.manual_seed(0)
        before = torch.get_rng_state()
        with pytest.raises(RuntimeError, match="pin_memory=True requires a CUDA or other accel"):
            make(torch, pin_memory=True)
        assert torch.equal(torch.get_rng_state(), before)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = torch.ones(2, device="sim", requires_grad=True).exp()
    y.sum().backward()


# ---- CuPy ---------------------------------------------------------------------------------------


def test_memory_of_a_gpu_comes_from_cupys_pool(monkeypatch) -> None:
    asked, alive = [], []

    class Freed(bytearray):
        def __del__(self):
            alive.remove(len(self))

    def alloc_pinned_memory(nbytes):
        memory = Freed(1 << nbytes.bit_length())
        asked.append(nbytes)
        alive.append(len(memory))
        return memory

    cuda = types.SimpleNamespace(alloc_pinned_memory=alloc_pinned_memory)
    monkeypatch.setattr(pinned, "cupy", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(accelerator, "kind", lambda: "cuda")
    x = torch.arange(5.0).pin_memory()
    assert x.is_pinned() and x.tolist() == [0, 1, 2, 3, 4]
    assert asked == [20] and alive == [32] and x.untyped_storage().nbytes() == 20
    part = torch.zeros(3, 3, pin_memory=True)[1]
    assert asked == [20, 36] and part.is_pinned() and part.tolist() == [0, 0, 0]
    del x
    assert alive == [64]
    del part
    assert alive == []
    assert not torch.empty(0, pin_memory=True).is_pinned() and asked == [20, 36]
