"""Layout maths: hand-computed values, one by one; tests/conformance compares at random."""

from __future__ import annotations

import itertools

import pytest

from torchlab._core import layout as L


def addresses(shape, stride, offset=0):
    """Memory places of all elements, in row-major order of the indices: the slow definition."""
    places = []
    for index in itertools.product(*[range(n) for n in shape]):
        places.append(offset + sum(i * s for i, s in zip(index, stride, strict=True)))
    return places


SHAPES = [(), (1,), (4,), (2, 3), (1, 3), (3, 1), (2, 1, 3), (2, 3, 4), (1, 1), (2, 2, 1, 2)]


def dense_layouts():
    """Every order of dims in memory for every shape of SHAPES, and each with an expanded dim."""
    for shape in SHAPES:
        for order in itertools.permutations(range(len(shape))):
            stride, running = [0] * len(shape), 1
            for d in order:
                stride[d] = running
                running *= shape[d]
            yield shape, tuple(stride)
            for d in range(len(shape)):
                yield shape, (*stride[:d], 0, *stride[d + 1 :])


def test_numel():
    assert L.numel(()) == 1
    assert L.numel((2, 0, 3)) == 0
    assert L.numel((2, 3)) == 6


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((), ()),
        ((5,), (1,)),
        ((0,), (1,)),
        ((2, 3), (3, 1)),
        ((2, 0), (1, 1)),
        ((2, 0, 3), (3, 3, 1)),
        ((2, 3, 4, 5), (60, 20, 5, 1)),
    ],
)
def test_contiguous_strides(shape, stride):
    assert L.contiguous_strides(shape) == stride
    assert L.is_contiguous(shape, stride)
    assert L.why_not_contiguous(shape, stride) is None


def test_channels_last():
    assert L.channels_last_strides((2, 3, 4, 5)) == (60, 1, 15, 3)
    assert L.channels_last_strides((2, 3, 4, 5, 6)) == (360, 1, 90, 18, 3)
    assert L.is_channels_last((2, 3, 4, 5), (60, 1, 15, 3))
    assert not L.is_channels_last((2, 3, 4, 5), (60, 20, 5, 1))
    assert not L.is_channels_last((2, 3), (3, 1))
    assert L.suggest_memory_format((2, 3, 4, 5), (60, 1, 15, 3)) == "channels_last"
    assert L.suggest_memory_format((2, 3, 1, 1), (3, 1, 1, 1)) == "contiguous"
    assert L.suggest_memory_format((2, 3, 4, 5, 6), (360, 1, 90, 18, 3)) == "channels_last_3d"
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        L.channels_last_strides((2, 3))


@pytest.mark.parametrize("layout", list(dense_layouts()))
def test_predicates_against_addresses(layout):
    shape, stride = layout
    places = addresses(shape, stride)
    assert L.is_contiguous(shape, stride) == (places == list(range(len(places))))
    dense = sorted(places) == list(range(len(places)))
    assert L.is_non_overlapping_and_dense(shape, stride) == dense
    kept = L.empty_like_strides(shape, stride)
    assert sorted(addresses(shape, kept)) == list(range(len(places)))
    assert (L.has_internal_overlap(shape, stride) == "no") == dense
    assert L.memory_range(shape, stride, 3, 4) == (4 * (3 + min(places)), 4 * (4 + max(places)))
    assert (L.why_not_contiguous(shape, stride) is None) == L.is_contiguous(shape, stride)


def test_why_not_contiguous_names_the_dims():
    assert "dims 0 and 1 lie in transposed order" in L.why_not_contiguous((3, 2), (1, 3))
    gap = L.why_not_contiguous((3, 2), (5, 1))
    assert gap.startswith("dims 0 and 1:")
    assert "gap of 3 elements" in gap
    assert "dim 0 was expanded: its 3 indices" in L.why_not_contiguous((3, 2), (0, 1))
    assert "has stride 2 instead of 1" in L.why_not_contiguous((3,), (2,))
    assert "dims 0 and 2" in L.why_not_contiguous((3, 1, 2), (7, 9, 1))


@pytest.mark.parametrize(
    ("dim", "ndim", "expected"), [(0, 2, 0), (-1, 2, 1), (-1, 0, 0), (0, 0, 0)]
)
def test_wrap_dim(dim, ndim, expected):
    assert L.wrap_dim(dim, ndim) == expected


def test_wrap_dim_errors():
    with pytest.raises(IndexError) as error:
        L.wrap_dim(3, 2, "sum")
    assert (
        str(error.value)
        == "sum: Dimension out of range (expected to be in range of [-2, 1], but got 3)"
    )
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        L.wrap_dim(1, 0)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        L.wrap_dims((0, -2), 2)
    assert L.wrap_dims((-1, 0), 3) == (2, 0)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([], ()),
        ([(), (2, 3)], (2, 3)),
        ([(3, 1), (1, 4)], (3, 4)),
        ([(4,), (2, 1), (5, 1, 1)], (5, 2, 4)),
        ([(1,), (0,)], (0,)),
        ([(2, 3), (2, 3)], (2, 3)),
    ],
)
def test_broadcast_shapes(shapes, expected):
    assert L.broadcast_shapes(*shapes) == expected


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((2, 3), (2, 4), r"tensor a \(3\) must match the size of tensor b \(4\) at .* dimension 1"),
        ((4,), (2, 3), r"tensor a \(4\) must match the size of tensor b \(3\) at .* dimension 1"),
        ((2, 3), (4, 1), r"tensor a \(2\) must match the size of tensor b \(4\) at .* dimension 0"),
    ],
)
def test_broadcast_errors(a, b, text):
    with pytest.raises(RuntimeError, match=text):
        L.broadcast_shapes(a, b)


def test_expand():
    assert L.expand((3, 1), (1, 1), (2, -1, 4)) == ((2, 3, 4), (0, 1, 0))
    assert L.expand((2, 3), (3, 1), (1, 2, 3)) == ((1, 2, 3), (6, 3, 1))
    assert L.expand((), (), (2, 1)) == ((2, 1), (0, 0))
    for target, text in [
        ((4,), r"number of sizes provided \(1\) must be greater or equal"),
        ((2, 4), r"expanded size of the tensor \(4\) must match the existing size \(3\)"),
        ((-1, 2, 3), r"\(-1\) isn't allowed in a leading, non-existing dimension 0"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            L.expand((2, 3), (3, 1), target)


def test_infer_size():
    assert L.infer_size((2, -1), 6) == (2, 3)
    assert L.infer_size((-1, 2), 0) == (0, 2)
    assert L.infer_size((), 1) == ()
    for shape, count, text in [
        ((2, 3), 5, r"shape '\[2, 3\]' is invalid for input of size 5"),
        ((4, -1), 6, r"shape '\[4, -1\]' is invalid for input of size 6"),
        ((-1, -1), 6, "only one dimension can be inferred"),
        ((-2, 3), 6, r"invalid shape dimension -2 at index 0 of shape \[-2, 3\]"),
        ((-1, 0), 0, r"cannot reshape tensor of 0 elements into shape \[-1, 0\] because the"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            L.infer_size(shape, count)


@pytest.mark.parametrize("layout", list(dense_layouts()))
def test_view_exists_exactly_when_the_addresses_allow_it(layout):
    shape, stride = layout
    places = addresses(shape, stride)
    for new in [(len(places),), (len(places), 1), (2, -1), (-1, 2), (-1, 3)]:
        if len(places) % (abs(new[0]) * abs(new[-1]) if -1 in new else 1):
            continue
        sizes = L.infer_size(new, len(places))
        found = L.view_strides(shape, stride, sizes)
        expressible = any(
            addresses(sizes, steps) == places
            for steps in itertools.product(range(max(places) + 1), repeat=len(sizes))
        )
        if found is not None:
            assert addresses(sizes, found) == places
            assert L.why_view_fails(shape, stride, new) is None
        else:
            assert "would span dims" in L.why_view_fails(shape, stride, new)
        assert (found is not None) == expressible


def test_view():
    assert L.view((2, 3), (3, 1), (3, 2)) == ((3, 2), (2, 1))
    assert L.view((4, 2), (1, 4), (2, 2, -1)) == ((2, 2, 2), (2, 1, 4))
    assert L.view((0, 3), (7, 7), (3, 0, 2)) == ((3, 0, 2), (2, 2, 1))
    assert L.view((0, 3), (7, 7), (0, 3)) == ((0, 3), (7, 7))
    assert L.view((), (), (1, 1)) == ((1, 1), (1, 1))
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size"):
        L.view((3, 2), (1, 3), (6,))
    assert (
        L.why_view_fails((3, 2), (1, 3), (6,))
        == "new dim 0 (size 6) would span dims 0 and 1 of the tensor of shape [3, 2] and strides"
        " [1, 3], but one step along dim 0 moves 1 elements and dim 1 inside it spans 2 x 3 = 6"
    )


def test_permute_and_transpose():
    shape, stride = (2, 3, 4), (12, 4, 1)
    assert L.permute(shape, stride, (2, 0, -2)) == ((4, 2, 3), (1, 12, 4))
    assert L.transpose(shape, stride, 0, -1) == ((4, 3, 2), (1, 4, 12))
    assert L.transpose((), (), 0, -1) == ((), ())
    assert L.movedim(shape, stride, (0, 1), (2, 0)) == ((3, 4, 2), (4, 1, 12))
    with pytest.raises(RuntimeError, match=r"input.dim\(\) = 3 is not equal to len\(dims\) = 1"):
        L.permute(shape, stride, (0,))
    with pytest.raises(RuntimeError, match=r"permute\(\): duplicate dims are not allowed"):
        L.permute(shape, stride, (0, 0, 1))
    with pytest.raises(RuntimeError, match=r"repeated dim in `source` \(\[0, 0\]\)"):
        L.movedim(shape, stride, (0, 0), (1, 2))
    with pytest.raises(RuntimeError, match="same number of dims as destination"):
        L.movedim(shape, stride, (0, 1), (1,))


def test_squeeze_and_unsqueeze():
    assert L.squeeze((2, 1, 3, 1), (3, 3, 1, 1)) == ((2, 3), (3, 1))
    assert L.squeeze((2, 1, 3), (3, 3, 1), 0) == ((2, 1, 3), (3, 3, 1))
    assert L.squeeze((2, 1, 1), (1, 1, 1), (1, -1)) == ((2,), (1,))
    assert L.squeeze((2, 1), (1, 1), ()) == ((2, 1), (1, 1))
    assert L.unsqueeze((3, 2), (1, 3), 1) == ((3, 1, 2), (1, 6, 3))
    assert L.unsqueeze((3, 2), (1, 3), -1) == ((3, 2, 1), (1, 3, 1))
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 4"):
        L.unsqueeze((3, 2), (1, 3), 4)


def test_select_and_slice():
    shape, stride = (3, 4), (4, 1)
    assert L.select(shape, stride, 2, 0, -1) == ((4,), (1,), 10)
    assert L.slice_(shape, stride, 0, 1, 1, None, 2) == ((3, 2), (4, 2), 1)
    assert L.slice_(shape, stride, 0, 0, -2, 100) == ((2, 4), (4, 1), 4)
    assert L.slice_(shape, stride, 0, 0, 2, 1) == ((0, 4), (4, 1), 8)
    with pytest.raises(IndexError, match=r"index 3 out of range for tensor of size \[3, 4\] at"):
        L.select(shape, stride, 0, 0, 3)
    with pytest.raises(IndexError, match=r"select\(\) cannot be applied to a 0-dim tensor"):
        L.select((), (), 0, 0, 0)
    with pytest.raises(RuntimeError, match="slice step must be positive"):
        L.slice_(shape, stride, 0, 0, step=0)


@pytest.mark.parametrize(
    "picked",
    [slice(a, b, s) for a in (None, -9, -2, 0, 2, 9) for b in (None, -1, 3) for s in (1, 3)],
)
def test_slice_picks_what_a_list_does(picked):
    shape, stride, offset = L.slice_((5,), (1,), 0, 0, picked.start, picked.stop, picked.step or 1)
    assert addresses(shape, stride, offset) == list(range(5))[picked]


def test_unfold_and_diagonal():
    assert L.unfold((7,), (2,), 0, 3, 2) == ((3, 3), (4, 2))
    assert L.unfold((), (), 0, 1, 1) == ((1,), (1,))
    assert L.diagonal((3, 4), (4, 1), 0, 1) == ((3,), (5,), 1)
    assert L.diagonal((3, 4), (4, 1), 0, -1) == ((2,), (5,), 4)
    assert L.diagonal((2, 3, 4), (12, 4, 1), 5, 0, 0, 2) == ((3, 2), (4, 13), 5)
    assert L.diagonal((3, 4), (4, 1), 2, 9) == ((0,), (5,), 2)
    with pytest.raises(RuntimeError, match="maximum size for tensor at dimension 0 is 5 but size"):
        L.unfold((5,), (1,), 0, 6, 1)
    with pytest.raises(RuntimeError, match="step is 0 but must be > 0"):
        L.unfold((5,), (1,), 0, 2, 0)
    with pytest.raises(RuntimeError, match="diagonal dimensions cannot be identical 0, -2"):
        L.diagonal((3, 4), (4, 1), 0, 0, 0, -2)


def test_flatten_and_unflatten():
    assert L.flatten_shape((2, 3, 4), 1) == (2, 12)
    assert L.flatten_shape(()) == (1,)
    assert L.unflatten_shape((12, 5), 0, (-1, 4)) == (3, 4, 5)
    with pytest.raises(RuntimeError, match="start_dim cannot come after end_dim"):
        L.flatten_shape((2, 3), 1, 0)
    with pytest.raises(
        RuntimeError, match=r"sizes \[5, 2\] don't multiply up to the size of dim 0"
    ):
        L.unflatten_shape((12,), 0, (5, 2))
    with pytest.raises(RuntimeError, match="sizes must be non-empty"):
        L.unflatten_shape((12,), 0, ())


def test_as_strided_check():
    L.as_strided_check((2, 3), (3, 1), 0, 24, 4)
    L.as_strided_check((0, 9), (3, 1), 99, 0, 4)
    for arguments, text in [
        (((3, 3), (3, 1), 0, 20, 4), "requiring a storage size of 36 are out of bounds for"),
        (((3,), (1,), 3, 20, 4), "storage offset 3, and itemsize 4 requiring a storage size of 24"),
        (((3,), (-1,), 0, 20, 4), "Negative strides are not supported at the moment"),
        (((3,), (1, 1), 0, 20, 4), "mismatch in length of strides and shape"),
        (((3,), (1,), -1, 20, 4), "invalid storage offset -1"),
        (((-3,), (1,), 0, 20, 4), "a size is negative"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            L.as_strided_check(*arguments)
    assert L.storage_nbytes((2, 3), (3, 1), 2, 8) == 64
    assert L.storage_nbytes((2, 0), (3, 1), 2, 8) == 0


@pytest.mark.parametrize(
    ("shapes", "strides", "expected"),
    [
        # one dense operand keeps its layout; a second of another order gives way to the first
        ([(2, 3)], [(1, 2)], (1, 2)),
        ([(2, 3), (2, 3)], [(1, 2), (3, 1)], (1, 2)),
        ([(2, 3), (2, 3)], [(3, 1), (1, 2)], (3, 1)),
        # an expanded operand says nothing about its dim; the next one decides
        ([(2, 3), (2, 3)], [(0, 0), (1, 2)], (1, 2)),
        # a gap is closed, the order kept; a number has no say
        ([(2, 3), ()], [(1, 5), ()], (1, 2)),
        # broadcasting a column of one transposed operand
        ([(2, 3), (2, 1)], [(1, 2), (1, 1)], (1, 2)),
        # size 0: row-major counts it as 1, a permuted result does not
        ([(2, 0, 3), ()], [(3, 3, 1), ()], (3, 3, 1)),
    ],
)
def test_pointwise_result(shapes, strides, expected):
    out = L.broadcast_shapes(*shapes)
    assert L.ti_output_strides(out, shapes, strides) == expected


def test_pointwise_result_channels_last():
    shape, last = (2, 3, 4, 5), (60, 1, 15, 3)
    assert L.ti_output_strides(shape, [shape, shape], [last, last]) == last
    assert L.ti_output_strides(shape, [shape, (1, 3, 1, 1)], [last, (3, 1, 1, 1)]) == last


def test_empty_like_strides():
    assert L.empty_like_strides((2, 3), (1, 2)) == (1, 2)
    assert L.empty_like_strides((2, 3), (1, 5)) == (1, 2)  # the gap goes, the order stays
    assert L.empty_like_strides((2, 3), (0, 1)) == (3, 1)
    assert L.empty_like_strides((4,), (3,)) == (1,)


def test_reductions():
    assert L.reduction_shape((2, 3, 4), 1) == (2, 4)
    assert L.reduction_shape((2, 3, 4), (0, -1), True) == (1, 3, 1)
    assert L.reduction_shape((2, 3), None) == L.reduction_shape((2, 3), ()) == ()
    assert L.reduction_strides((4, 2, 3), 1, True) == (3, 3, 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        L.reduction_shape((2, 3), 2)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((3,), (3,), ()),
        ((2, 3), (3,), (2,)),
        ((3,), (3, 4), (4,)),
        ((2, 3), (3, 4), (2, 4)),
        ((5, 1, 2, 3), (7, 3, 4), (5, 7, 2, 4)),
        ((5, 2, 3), (3,), (5, 2)),
        ((3,), (5, 3, 4), (5, 4)),
    ],
)
def test_matmul_shape(a, b, expected):
    assert L.matmul_shape(a, b) == expected


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((2, 3), (4, 5), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
        ((3,), (4, 2), r"mat1 and mat2 shapes cannot be multiplied \(1x3 and 4x2\)"),
        ((2, 3), (4,), r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)"),
        ((3,), (4,), r"expected tensor \[3\] and src \[4\] to have the same number of elements"),
        ((), (3,), "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
        ((2, 2, 3), (2, 4, 5), r"to be: \[2, 3\] but got: \[2, 4\]"),
        ((5, 2, 3), (4, 3, 5), r"tensor a \(5\) must match the size of tensor b \(4\)"),
    ],
)
def test_matmul_errors(a, b, text):
    with pytest.raises(RuntimeError, match=text):
        L.matmul_shape(a, b)


def test_cat_shape():
    assert L.cat_shape([(2, 3), (4, 3)]) == (6, 3)
    assert L.cat_shape([(2, 3), (0,), (2, 1)], -1) == (2, 4)
    assert L.cat_shape([(0,), (0,)]) == (0,)
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        L.cat_shape([])
    for shapes, text in [
        ([(2, 3), (2, 4)], "Expected size 3 but got size 4 for tensor number 1 in the list"),
        ([(2, 3), (2,)], "Tensors must have same number of dimensions: got 2 and 1"),
        ([(), (2,)], r"zero-dimensional tensor \(at position 0\) cannot be concatenated"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            L.cat_shape(shapes)


def test_windows():
    assert L.conv_output_shape((8, 9), (3, 3), (2, 1), (1, 0), (1, 2)) == (4, 5)
    assert L.pool_output_shape((5, 5), (2, 2), (2, 2), (0, 0), (1, 1)) == (2, 2)
    assert L.pool_output_shape((5, 5), (2, 2), (2, 2), (0, 0), (1, 1), True) == (3, 3)
    # the last window would start in the right padding, so it is left out: 4, not 5
    assert L.pool_output_shape((7,), (2,), (2,), (1,), (1,), True) == (4,)
    assert L.pool_output_shape((2,), (1,), (3,), (0,), (1,), True) == (1,)
    assert L.conv_transpose_output_shape((4,), (3,), (2,), (1,), (1,), (1,)) == (8,)


def test_window_errors():
    one, zero = (1, 1), (0, 0)
    for call, text in [
        (
            lambda: L.conv_output_shape((2, 2), (5, 5), one, zero, one),
            r"size per channel: \(2 x 2\). Kernel size: \(5 x 5\). Kernel size can't be greater",
        ),
        (lambda: L.conv_output_shape((8, 8), (3, 3), zero, zero, one), "non-positive stride"),
        (lambda: L.conv_output_shape((8, 8), (3, 3), one, (-1, 0), one), "negative padding"),
        (
            lambda: L.conv_output_shape((8, 8), (3, 3), one, zero, zero),
            "dilation should be greater",
        ),
        (
            lambda: L.pool_output_shape((2, 2), (3, 3), (3, 3), zero, one, planes=3),
            r"Given input size: \(3x2x2\). Calculated output size: \(3x0x0\). Output size is too",
        ),
        (
            lambda: L.pool_output_shape((2, 2), (2, 2), one, (2, 2), one),
            "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2",
        ),
        (lambda: L.pool_output_shape((2, 2), (2, 2), zero, zero, one), "stride should not be zero"),
        (
            lambda: L.conv_transpose_output_shape((4,), (3,), (2,), (1,), (2,), (1,)),
            "output padding must be smaller than either stride or dilation",
        ),
        (
            lambda: L.conv_transpose_output_shape((1,), (1,), (1,), (2,), (0,), (1,)),
            r"Calculated output size per channel: \(-3\). Output size is too small",
        ),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_overlap():
    row = L.Extent((2, 3), (3, 1), 0, 4)
    assert L.overlap(row, row) == "full"
    assert L.overlap(row, row._replace(stride=(1, 2))) == "partial"
    assert L.overlap(row, row._replace(offset=5)) == "partial"
    assert L.overlap(row, row._replace(offset=6)) == "no"
    assert L.overlap(row, row._replace(stride=(9, 1))) == "too_hard"
    assert L.overlap(row, row._replace(shape=(0, 3))) == "no"
    # eight-byte elements over the same 24 bytes
    assert L.overlap(row, L.Extent((3,), (1,), 0, 8)) == "partial"
    assert L.has_internal_overlap((3, 2), (0, 1)) == "yes"
    assert L.has_internal_overlap((3, 2), (5, 1)) == "too_hard"
    assert L.memory_range((3, 2), (-2, 1), 4, 8) == (0, 48)
    assert L.memory_range((3, 0), (2, 1), 4, 8) == (32, 32)
