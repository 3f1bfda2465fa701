"""`x[...]` and `x[...] = v` against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab


def grid(requires_grad=False):
    """0 … 11 in three rows of four."""
    x = torchlab.arange(12.0).reshape(3, 4)
    return x.clone().requires_grad_() if requires_grad else x.clone()


def test_basic_indexing_gives_views():
    x = grid()
    row, part, last = x[1], x[1:3, 2], x[..., -1]
    assert row.tolist() == [4.0, 5.0, 6.0, 7.0] and row._base is x
    assert part.tolist() == [6.0, 10.0] and part.stride() == (4,) and part.storage_offset() == 6
    assert last.tolist() == [3.0, 7.0, 11.0]
    row[0] = 99.0
    assert x[1, 0].item() == 99.0 and x[1, 0].shape == ()
    assert x[::2, 1::2].tolist() == [[1.0, 3.0], [9.0, 11.0]]


def test_new_dimensions_have_row_major_strides():
    x = grid()
    assert x[None].stride() == (12, 4, 1)
    assert x[:, None].stride() == (4, 4, 1)
    assert x[..., None].stride() == (4, 1, 1)
    assert x[None, 1:].shape == (1, 2, 4) and x[None, 1:].stride() == (12, 4, 1)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ([0, 2], [[0, 1, 2, 3], [8, 9, 10, 11]]),
        (([0, 1], [1, 2]), [1, 6]),
        (np.array([2, 2]), [[8, 9, 10, 11], [8, 9, 10, 11]]),
        ((slice(None), [3, 0]), [[3, 0], [7, 4], [11, 8]]),
        ((0, [1, -1]), [1, 3]),
        ([True, False, True], [[0, 1, 2, 3], [8, 9, 10, 11]]),
        (True, [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]]),
        ([], []),
    ],
)
def test_advanced_indexing_copies(index, expected):
    r = grid()[index]
    assert r.tolist() == expected and r._base is None


def test_masks():
    x = grid()
    assert x[x > 8].tolist() == [9.0, 10.0, 11.0]
    assert x[torchlab.tensor([False, True, False]), 1:3].tolist() == [[5.0, 6.0]]
    assert x[torchlab.tensor(False)].shape == (0, 3, 4)
    assert torchlab.tensor(3.0)[torchlab.tensor(True)].tolist() == [3.0]


def test_index_arrays_apart_come_first():
    x = torchlab.arange(24).reshape(2, 3, 4)
    assert x[[0, 1], :, [0, 1]].shape == (2, 3)
    assert x[:, [0, 1], [0, 1]].shape == (2, 2)
    assert x[[0, 1], :, [0, 1]].tolist() == [[0, 4, 8], [13, 17, 21]]


def chain(t):
    names, node = [], t.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names[:-1]


def test_names_on_the_tape():
    x = grid(requires_grad=True)
    assert chain(x[0]) == ["SelectBackward0"]
    assert chain(x[1:3, 2]) == ["SelectBackward0", "SliceBackward0"]
    assert chain(x[:, 1]) == ["SelectBackward0"]
    assert chain(x[:]) == ["SliceBackward0"]
    assert chain(x[...]) == ["AliasBackward0"]
    assert chain(x[None]) == ["UnsqueezeBackward0"]
    assert chain(x[[0]]) == ["IndexBackward0"]


def test_repeated_indices_add_their_gradients():
    x = grid(requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [[2.0] * 4, [0.0] * 4, [1.0] * 4]


def test_second_derivative():
    x = torchlab.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torchlab.autograd.grad((x[[0, 0, 1]] ** 3).sum(), x, create_graph=True)
    assert g.tolist() == [6.0, 12.0]
    (h,) = torchlab.autograd.grad(g.sum(), x)
    assert h.tolist() == [12.0, 12.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "uint8", "complex64"])
def test_writing(dtype):
    x = torchlab.zeros(2, 3, dtype=getattr(torchlab, dtype))
    x[0] = 1
    x[:, 2] = torchlab.tensor([5, 6]).to(x.dtype)
    x[[1, 1], [0, 1]] = 7
    assert x.tolist() == [[1, 1, 5], [7, 7, 6]]
    x[x == 7] = 0
    assert x.tolist() == [[1, 1, 5], [0, 0, 6]]


def test_numbers_are_converted():
    x = torchlab.zeros(2, dtype=torchlab.uint8)
    x[0] = -1
    x[1] = 2.7
    assert x.tolist() == [255, 2]
    with pytest.raises(RuntimeError, match="without overflow"):
        x[0] = 300
    assert x.tolist() == [255, 2]


def test_a_recorded_write_splits_the_gradient():
    x = grid(requires_grad=True)
    v = torchlab.ones(4, requires_grad=True)
    y = x * 1
    y[1] = v * 3
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [[1.0] * 4, [0.0] * 4, [1.0] * 4]
    assert v.grad.tolist() == [3.0] * 4


def test_a_recorded_write_at_indices():
    x = grid(requires_grad=True)
    y = x * 1
    y[[0, 2]] = 0.0
    assert y.grad_fn.name() == "IndexPutBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [[0.0] * 4, [1.0] * 4, [0.0] * 4]


def test_leaves_are_protected():
    x = grid(requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0] = 1.0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[[0]] = 1.0
    with torchlab.no_grad():
        x[0] = 1.0
    assert x[0].tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        ([7], IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
        (1.5, IndexError, "only integers, slices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (([0, 1], [0, 1, 2]), IndexError, "could not be broadcast together with shapes"),
        ([True, False], IndexError, "The shape of the mask"),
    ],
)
def test_errors(index, error, text):
    with pytest.raises(error, match=text):
        grid()[index]


def test_refused_writes_change_nothing():
    x = grid()
    version = x._version
    for index, value in (
        ([0, 9], 1.0),
        (0, torchlab.ones(3)),
        ([0, 1], torchlab.ones(3)),
        (0, "a"),
    ):
        with pytest.raises((IndexError, RuntimeError, TypeError)):
            x[index] = value
    assert x.tolist() == grid().tolist() and x._version == version


def test_overlapping_source_is_refused():
    x = torchlab.arange(5.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[[0, 1]] = x[1:3]


def test_a_free_stride_of_the_source_is_kept() -> None:
    """Along a size of 1 any stride will do; PyTorch's result has the source's."""
    x = torchlab.arange(2.0).as_strided((1, 2, 1), (2, 1, 2))
    assert x[torchlab.tensor([0])].stride() == (2, 1, 2)
