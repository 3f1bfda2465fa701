"""Indexing against real PyTorch: random tensors of any layout, random indices; values, strides,
aliasing, gradients, writes and errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torchlab

torch = pytest.importorskip("torch")

SETTINGS = settings(max_examples=1000, deadline=None)
ERRORS = (RuntimeError, IndexError, ValueError, TypeError)
DTYPES = ["float32", "float64", "int64", "bool", "float16", "bfloat16", "complex64", "uint8"]


def both(shape, dtype="float64"):
    """The same numbers in both libraries, row-major."""
    n = int(np.prod(shape, dtype=int))
    ours = torchlab.arange(n).to(getattr(torchlab, dtype)).reshape(shape)
    theirs = torch.arange(n).to(getattr(torch, dtype)).reshape(shape)
    return ours, theirs


@st.composite
def bases(draw, dtype=None):
    """(torchlab tensor, torch tensor): contiguous, permuted, sliced or expanded."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 0, 3, 2]), max_size=4)))
    ours, theirs = both(shape, dtype or draw(st.sampled_from(DTYPES)))
    kind = draw(st.sampled_from(["plain", "plain", "permuted", "sliced", "expanded"]))
    if kind == "permuted":
        order = draw(st.permutations(range(len(shape))))
        return ours.permute(order), theirs.permute(order)
    if kind == "sliced" and shape:
        d = draw(st.integers(0, len(shape) - 1))
        start, step = draw(st.integers(0, 2)), draw(st.integers(1, 2))
        key = (slice(None),) * d + (slice(start, None, step),)
        return ours[key], theirs[key]
    if kind == "expanded":
        return ours.unsqueeze(0).expand(2, *shape), theirs.unsqueeze(0).expand(2, *shape)
    return ours, theirs


def number(draw, n, wild):
    low, high = (-n - 1, n) if wild else (-n, n - 1)
    return draw(st.integers(low, high)) if low <= high else 0


@st.composite
def indices(draw, shape, advanced=True):
    """A random index for a tensor of `shape`, as a function of the library (torchlab or torch)."""
    wild = draw(st.integers(0, 9)) == 0
    entries, d, ellipsis = [], 0, False
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    while d < len(shape) and draw(st.integers(0, 5)):
        kinds = ["int", "slice", "slice", "full", "none", "ellipsis", "zero_dim"]
        if advanced:
            kinds += ["tensor", "tensor", "list", "mask", "array", "bool"]
        kind = draw(st.sampled_from(kinds))
        n = shape[d]
        if kind == "ellipsis":
            if ellipsis:
                continue
            ellipsis = True
            d += draw(st.integers(0, len(shape) - d))
            entries.append(("plain", Ellipsis))
            continue
        if kind == "none":
            entries.append(("plain", None))
            continue
        if kind == "bool":
            entries.append(("plain", draw(st.sampled_from([True, True, False]))))
            continue
        if kind == "int":
            entries.append(("plain", number(draw, n, wild)))
        elif kind == "zero_dim":
            entries.append(("tensor", np.array(number(draw, n, wild))))
        elif kind == "full":
            entries.append(("plain", slice(None)))
        elif kind == "slice":
            bound = st.none() | st.integers(-5, 5)
            entries.append(
                ("plain", slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3]))))
            )
        elif kind == "mask":
            k = draw(st.integers(1, min(2, len(shape) - d)))
            size = shape[d : d + k]
            bits = draw(
                st.lists(st.booleans(), min_size=int(np.prod(size)), max_size=int(np.prod(size)))
            )
            entries.append(("tensor", np.array(bits, bool).reshape(size)))
            d += k
            continue
        else:
            size = () if kind == "list" else common
            if n == 0 and not wild:
                size = (0,)
            count = int(np.prod(size))
            values = np.array([number(draw, n, wild) for _ in range(count)], np.int64).reshape(size)
            if kind == "list":
                entries.append(("plain", [number(draw, n, wild) for _ in range(2)] if n else []))
            elif kind == "array":
                entries.append(("plain", values if values.ndim else values.reshape(1)))
            else:
                entries.append(
                    ("tensor", values.astype(draw(st.sampled_from([np.int64, np.int32]))))
                )
        d += 1
    single = len(entries) == 1 and draw(st.booleans())

    def build(library):
        made = [library.tensor(x) if how == "tensor" else x for how, x in entries]
        return made[0] if single else tuple(made)

    return build


def outcome(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except ERRORS as error:
        return error


def numbers(t):
    return (
        t.detach().resolve_conj().to(torch.complex128).numpy()
        if isinstance(t, torch.Tensor)
        else (t.detach().to(torchlab.complex128).numpy())
    )


def offset(view, base):
    return (view.data_ptr() - base.data_ptr()) // base.element_size() if view.numel() else None


def note(label, *facts):
    event = ", ".join(map(str, facts))
    return f"{label}: {event}"


def compare(ours, theirs):
    """Equal outcomes: the same class of error, or the same tensor."""
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"expected {theirs!r}, got a result"
        assert type(ours) is type(theirs), (ours, theirs)
        return False
    if isinstance(ours, Exception):
        raise ours
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_array_equal(numbers(ours), numbers(theirs))
    return True


@SETTINGS
@given(st.data())
def test_reading(data):
    ours, theirs = data.draw(bases())
    build = data.draw(indices(tuple(theirs.shape)))
    i, j = build(torchlab), build(torch)
    r, expected = outcome(lambda: ours[i]), outcome(lambda: theirs[j])
    if not compare(r, expected):
        return
    if expected.numel():
        assert tuple(r.stride()) == tuple(expected.stride()), note(
            "strides", theirs.shape, theirs.stride(), j
        )
    assert (r._base is None) == (expected._base is None)
    assert r.is_contiguous() == expected.is_contiguous()
    if expected._is_view():
        assert offset(r, ours) == offset(expected, theirs)


@SETTINGS
@given(st.data())
def test_gradients_and_their_names(data):
    ours, theirs = data.draw(bases("float64"))
    ours, theirs = ours.detach().requires_grad_(), theirs.detach().requires_grad_()
    build = data.draw(indices(tuple(theirs.shape)))
    i, j = build(torchlab), build(torch)
    r, expected = outcome(lambda: ours[i]), outcome(lambda: theirs[j])
    if not compare(r, expected):
        return
    assert chain(r) == chain(expected), note("grad_fn", theirs.shape, j)
    n = expected.numel()
    (r * torchlab.arange(1, n + 1, dtype=torchlab.float64).reshape(r.shape)).sum().backward()
    (
        expected * torch.arange(1, n + 1, dtype=torch.float64).reshape(expected.shape)
    ).sum().backward()
    np.testing.assert_array_equal(numbers(ours.grad), numbers(theirs.grad))


def chain(t):
    names, node = [], t.grad_fn
    while node is not None:
        names.append(node.name().rsplit("::")[-1])
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@SETTINGS
@given(st.data())
def test_writing(data):
    """`x[i] = v` into fresh memory: the whole memory is compared, also after errors."""
    ours, theirs = data.draw(bases())
    ours, theirs = ours.clone(), theirs.clone()
    build = data.draw(indices(tuple(theirs.shape)))
    i, j = build(torchlab), build(torch)
    value = data.draw(st.sampled_from([0, 1, 7, 2.5, True, "row", "same"]))
    a = b = value
    if value == "row":
        a, b = both((3,), str(theirs.dtype).removeprefix("torch."))
    elif value == "same":
        target = outcome(lambda: theirs[j])
        if isinstance(target, Exception):
            return
        a, b = both(tuple(target.shape), str(theirs.dtype).removeprefix("torch."))
        if repeats(j):
            return  # which of several values stays is not defined
    before, memory = ours._version, theirs.clone()
    r, expected = outcome(lambda: ours.__setitem__(i, a)), outcome(lambda: theirs.__setitem__(j, b))
    if isinstance(expected, Exception):
        assert type(r) is type(expected), (r, expected)
        assert ours._version == before
        theirs = memory  # PyTorch may have written a part; torchlab must not
    elif isinstance(r, Exception):
        raise r
    np.testing.assert_array_equal(numbers(ours), numbers(theirs), note("index", j, "value", value))


def repeats(index):
    entries = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(x, (list, np.ndarray)) or (isinstance(x, torch.Tensor) and x.dtype != torch.bool)
        for x in entries
    )


@SETTINGS
@given(st.data())
def test_recorded_writes(data):
    """A write into a view of a tensor with a history: gradients of the tensor and of the value."""
    ours, theirs = data.draw(bases("float64"))
    ours, theirs = ours.detach().requires_grad_(), theirs.detach().requires_grad_()
    build = data.draw(indices(tuple(theirs.shape)))
    i, j = build(torchlab), build(torch)
    x, y = ours.clone(), theirs.clone()
    if repeats(j):
        return
    target = outcome(lambda: y[j])
    if isinstance(target, Exception):
        return
    a, b = both(tuple(target.shape))
    a, b = a.requires_grad_(), b.requires_grad_()
    x[i] = a * 2
    y[j] = b * 2
    n = theirs.numel()
    (x * torchlab.arange(1, n + 1, dtype=torchlab.float64).reshape(x.shape)).sum().backward()
    (y * torch.arange(1, n + 1, dtype=torch.float64).reshape(y.shape)).sum().backward()
    np.testing.assert_array_equal(numbers(ours.grad), numbers(theirs.grad))
    if b.grad is not None and b.numel():
        np.testing.assert_array_equal(numbers(a.grad), numbers(b.grad))


def test_messages():
    x, y = both((3, 4))
    for index in (
        7,
        (0, 9),
        -4,
        (0, 0, 0),
        [5],
        ([0, 1], [0, 1, 2]),
        1.5,
        {},
        "a",
        slice(None, None, -1),
    ):
        ours, theirs = outcome(lambda i=index: x[i]), outcome(lambda i=index: y[i])
        assert type(ours) is type(theirs) and str(ours).startswith(str(theirs)), (
            index,
            ours,
            theirs,
        )
    for index, value in ((0, "a"), (0, None), (0, [1.0]), ([0, 1], 1j), (9, 1.0)):
        ours = outcome(lambda i=index, v=value: x.__setitem__(i, v))
        theirs = outcome(lambda i=index, v=value: y.__setitem__(i, v))
        assert type(ours) is type(theirs), (index, value, ours, theirs)
