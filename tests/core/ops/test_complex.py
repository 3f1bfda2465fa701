"""Complex tensors and the views that are conjugates or negatives of their memory."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import torchlab as tl
from torchlab._core.ops._bits import Bits, Pending

Z = [[1 + 2j, 3 - 1j], [0.5j, 2]]


def test_a_conjugate_is_a_view() -> None:
    z = tl.tensor(Z)
    c = z.conj()
    assert c.is_conj() and not c.is_neg() and not z.is_conj()
    assert c._base is z and c.data_ptr() == z.data_ptr() and c.stride() == z.stride()
    assert c.tolist() == np.conj(Z).tolist()
    z[0, 0] = 7j
    assert c[0, 0].item() == -7j
    assert c.conj().data_ptr() == z.data_ptr() and not c.conj().is_conj()
    assert tl.ones(2).conj().is_conj() is False


def test_writes_go_through_the_bits() -> None:
    z = tl.tensor(Z)
    c, before = z.conj(), z._version
    c += 1j
    assert z[0].tolist() == [1 + 1j, 3 - 2j] and z._version == before + 1 == c._version
    c.imag.fill_(5)
    assert z.imag.tolist() == [[-5, -5], [-5, -5]]
    tl.mul(z, 2, out=c)
    assert z[0].tolist() == [2 + 10j, 6 + 10j]


def test_nothing_reads_the_memory_by_mistake() -> None:
    """What stands for the array refuses whatever would see or change a copy."""
    a = tl.tensor(Z).conj()._a
    want = np.conj(np.array(Z, np.complex64))
    assert type(a) is Bits
    for got in (np.asarray(a), a + 0, 0 + a, a[...], np.concatenate([a])[:2], a.copy(), a * 1):
        np.testing.assert_array_equal(got, want)
    assert (a == want).all() and not (a != want).any()
    with pytest.raises(TypeError):
        np.put(a, [0], [1])
    for name in ("fill", "sort", "ctypes", "data", "__array_interface__"):
        with pytest.raises(AttributeError):
            getattr(a, name)
    np.add(a, 1, out=a)
    np.testing.assert_array_equal(np.asarray(a), want + 1)
    np.testing.assert_array_equal(a.memory, np.conj(want + 1))
    np.copyto(a, 3j)
    assert (a.memory == -3j).all()


def test_numpy_and_dlpack_refuse() -> None:
    c = tl.tensor(Z).conj()
    with pytest.raises(RuntimeError, match=r"conjugate bit set.*resolve_conj"):
        c.numpy()
    with pytest.raises(RuntimeError, match=r"negative bit set.*resolve_neg"):
        np.asarray(c.imag)
    for x in (c, c.imag):
        with pytest.raises(BufferError, match="bit set"):
            np.from_dlpack(x)
    assert c.resolve_conj().numpy().tolist() == np.conj(Z).tolist()


def test_copies_and_pickles() -> None:
    z = tl.tensor(Z)
    c = pickle.loads(pickle.dumps(z.conj()))
    assert c.is_conj() and tl.equal(c, z.conj())
    d = copy.deepcopy(z.conj())
    assert not d.is_conj() and tl.equal(d, c)
    assert z.conj().clone().is_conj() is False
    assert z.conj().data.is_conj()


def test_gradients_through_writes() -> None:
    x = tl.tensor([1 + 1j, 2j], requires_grad=True)
    y = x * 1
    y.conj().mul_(2j)  # y = -2j · x
    np.testing.assert_allclose(y.detach().numpy(), [2 - 2j, 4])
    y.backward(tl.tensor([1, 1j]))  # conj(-2j) · g
    np.testing.assert_allclose(x.grad.numpy(), [2j, -2])
    x.grad = None
    y = x * 1
    y.imag.mul_(tl.tensor([3.0, 4.0]))
    (y.real + y.imag).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 + 3j, 1 + 4j])


def test_saved_memory_is_checked() -> None:
    y = tl.tensor([1 + 1j, 2j], requires_grad=True) * 1
    r = y.conj() * y.conj()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        r.backward(tl.ones(2, dtype=tl.complex64))


def test_dense_tensors_are_not_asked() -> None:
    """The class test that every generated call makes anyway is the only one."""
    assert type(tl.tensor(Z).conj()) is Pending and isinstance(tl.tensor(Z).conj(), tl.Tensor)
    assert type(tl.tensor(Z).conj() * 2) is tl.Tensor
    assert type(tl.tensor(Z).conj().conj()) is tl.Tensor


def test_views_as_another_type_are_views_on_the_tape() -> None:
    x = tl.tensor(Z, requires_grad=True)
    y = x * 1
    r = tl.view_as_real(y)
    assert r._base is y and r.grad_fn.name() == "ViewAsRealBackward0"
    r[..., 1].zero_()
    assert y.imag.abs().sum() == 0
    y.sum().abs().backward()
    assert x.grad.imag.abs().sum() == 0 and x.grad.real.abs().sum() > 0


def test_other_devices() -> None:
    c = tl.tensor(Z, device="sim").conj()
    assert c.is_conj() and (c * 1).cpu().tolist() == np.conj(Z).tolist()
    c.add_(1j)
    assert c.cpu()[0].tolist() == [1 - 1j, 3 + 2j]
    m = tl.empty(2, 3, dtype=tl.complex64, device="meta").mH
    assert m.is_conj() and m.stride() == (1, 3) and (m * 2).shape == (3, 2) and m.imag.is_neg()


def test_parts_are_written() -> None:
    z = tl.zeros(2, dtype=tl.complex64)
    z.real = tl.tensor([1.0, 2.0])
    z.imag = 3
    assert z.tolist() == [1 + 3j, 2 + 3j]
    x = tl.ones(2)
    x.real = tl.tensor(4.0)
    assert x.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="non-complex dtypes"):
        x.imag = 1
    w = tl.ones(2, dtype=tl.complex64, requires_grad=True) * 1
    part = tl.tensor([5.0, 6.0], requires_grad=True)
    w.imag = part
    w.imag.sum().backward()
    assert part.grad.tolist() == [1, 1]


def test_a_real_number_of_a_complex_one() -> None:
    assert float(tl.tensor(2 + 0j)) == 2 and int(tl.tensor(2.5 + 0j)) == 2
    with pytest.raises(RuntimeError, match="without overflow"):
        float(tl.tensor(2 + 1j))


def test_an_imaginary_part_that_is_lost_is_told() -> None:
    tl.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            assert tl.tensor([1 + 2j]).float().tolist() == [1]
    finally:
        tl.set_warn_always(False)
