"""From sizes to strides: memory formats, contiguity, and how a new result lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchlab._core.layout.shape import Shape, reduction_shape

_CHANNELS_LAST_ORDER = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}  # dims, fastest in memory first


def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides. A dim of size 0 counts as 1, so that no stride becomes 0:
    (2, 0, 3) has (3, 3, 1)."""
    ndim = len(shape)
    if ndim == 1:
        return (1,)
    if ndim == 2:
        return (shape[1] or 1, 1)
    out = [1] * ndim
    running = 1
    for i in range(ndim - 1, 0, -1):
        size = shape[i]
        if size:
            running *= size
        out[i - 1] = running
    return tuple(out)


def channels_last_strides(shape: Shape) -> Shape:
    """Strides with the channels (dim 1) fastest: NHWC for 4-d shapes, NDHWC for 5-d ones.

    Raises RuntimeError for another number of dims.
    """
    order = _CHANNELS_LAST_ORDER.get(len(shape))
    if order is None:
        raise RuntimeError(
            "required rank 4 tensor to use channels_last format (rank 5 for channels_last_3d),"
            f" but the shape is {list(shape)}"
        )
    out = [1] * len(shape)
    running = 1
    for d in order:
        out[d] = running
        running *= shape[d]  # unlike row-major strides, PyTorch's become 0 here
    return tuple(out)


def is_contiguous(shape: Shape, stride: Shape) -> bool:
    """Whether the elements lie in row-major order without gaps. The strides of dims of size 1 do
    not matter; a tensor without elements is contiguous. A symbolic size counts as none of 1: the
    answer is then the same for all it may be."""
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if step == expected:
            expected *= size
        elif type(size) is not int or size != 1:
            return 0 in shape
    return True


def is_channels_last(shape: Shape, stride: Shape) -> bool:
    """Whether a 4-d layout is dense in NHWC order, or a 5-d one in NDHWC order."""
    order = _CHANNELS_LAST_ORDER.get(len(shape))
    if order is None:
        return False
    expected = 1
    for d in order:
        size = shape[d]
        if size != 1:
            if stride[d] != expected:
                return False
            expected *= size
    return True


def is_non_overlapping_and_dense(shape: Shape, stride: Shape) -> bool:
    """Whether the elements fill one stretch of memory, each place once, in any order of dims."""
    if is_contiguous(shape, stride):
        return True
    dims = [(stride[i], shape[i]) for i in range(len(shape)) if shape[i] > 1]
    dims.sort()
    expected = 1
    for step, size in dims:
        if step != expected:
            return False
        expected *= size
    return True


def why_not_contiguous(shape: Shape, stride: Shape) -> str | None:
    """A sentence that names the first pair of dims, from the inside, that is out of row-major
    order; None for a contiguous layout."""
    if is_contiguous(shape, stride):
        return None
    expected = 1
    inner = -1  # the next dim inwards whose size is not 1
    for i in range(len(shape) - 1, -1, -1):
        if shape[i] == 1:
            continue
        if stride[i] != expected:
            break
        expected *= shape[i]
        inner = i
    step = stride[i]
    if inner < 0:
        why = (
            f"dim {i}, the innermost with more than one element, has stride {step} instead of 1, so"
            " its neighbours are not neighbours in memory"
        )
        outer = [d for d in range(i) if shape[d] > 1 and 0 < stride[d] < step]
        if outer:
            why += f"; dim {outer[-1]} has the smaller stride {stride[outer[-1]]}: dims"
            why += f" {outer[-1]} and {i} lie in transposed order"
    else:
        why = (
            f"dims {i} and {inner}: one step along dim {i} moves {step} elements, but dim {inner}"
            f" inside it spans {shape[inner]} x {stride[inner]} = {expected}"
        )
        if 0 < step < expected:
            why += "; they overlap or lie in transposed order"
        elif step > expected:
            why += f"; there is a gap of {step - expected} elements between its rows"
    if step == 0:
        why += f"; dim {i} was expanded: its {shape[i]} indices share one place in memory"
    return why


def suggest_memory_format(shape: Shape, stride: Shape) -> str:
    """Which format a result should have that follows this operand: "channels_last" (4-d),
    "channels_last_3d" (5-d) or "contiguous". Ambiguous layouts count as contiguous."""
    order = _CHANNELS_LAST_ORDER.get(len(shape))
    if order is None or stride[1] == 0:
        return "contiguous"
    least = 0
    for d in order:
        # N111 fits both formats; PyTorch takes NCHW.
        if shape[d] == 0 or stride[d] < least or (d == 0 and least == stride[1]):
            return "contiguous"
        least = stride[d]
        if shape[d] > 1:
            least *= shape[d]
    return "channels_last" if len(shape) == 4 else "channels_last_3d"


def _sort_dims(ndim: int, compare: Callable[[int, int], int]) -> list[int]:
    """Dims, fastest in memory first; see the Note below.

    Note [The order of dims]
    PyTorch starts from row-major order and sorts by insertion with a comparison of three outcomes:
    ordered (-1), swapped (1), or *ambiguous* (0), where a stride of 0 says nothing. An ambiguous
    pair is stepped over, and a later decisive comparison can carry a dim past it. The relation is
    not transitive, so the algorithm itself is the specification: another sort gives other strides.
    """
    perm = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = compare(perm[j], perm[at])
            if verdict > 0:
                perm[j], perm[at] = perm[at], perm[j]
                at = j
            elif verdict < 0:
                break
    return perm


def empty_like_strides(shape: Shape, stride: Shape) -> Shape:
    """Strides of a new tensor under `torch.preserve_format` (empty_like, clone, to): a layout that
    is dense and does not overlap is kept; of any other the order of the dims is kept."""
    if is_non_overlapping_and_dense(shape, stride):
        return tuple(stride)
    ndim = len(shape)
    if ndim == 1:
        return (1,)
    out = [0] * ndim
    running = 1
    for d in reversed(dim_order(shape, stride)):
        out[d] = running
        if shape[d] > 1:
            running *= shape[d]
    return tuple(out)


def dim_order(shape: Shape, stride: Shape) -> Shape:
    """The dims, slowest in memory first."""

    def compare(a: int, b: int) -> int:
        sa, sb = stride[a], stride[b]
        if sa == 0 or sb == 0:
            return 0
        if sa != sb:
            return -1 if sa < sb else 1
        return 1 if shape[a] > shape[b] else 0

    return tuple(reversed(_sort_dims(len(shape), compare)))


def ti_output_strides(
    shape: Shape, operand_shapes: Sequence[Shape], operand_strides: Sequence[Shape]
) -> Shape:
    """Strides (in elements) that PyTorch's TensorIterator gives the new result of a pointwise op.

    `shape` is the broadcast shape; the operands come in their order of the call, Python numbers as
    0-d shapes `()`. Operand strides may be in elements or bytes for the order of dims, and must be
    in elements for the shortcuts. An operand that is converted to the result's dtype before the op
    is one with the strides of the converted copy (`empty_like_strides`).
    """
    ndim = len(shape)
    if not operand_shapes or ndim == 0:
        return contiguous_strides(shape)
    first = operand_strides[0]
    if len(operand_shapes[0]) == ndim and operand_shapes[0] == shape:
        # Nearly every call: the first operand orders all dims as in row-major; no other is asked.
        last = 0
        for step in reversed(first):
            if step <= last:
                break
            last = step
        else:
            return contiguous_strides(shape)
    same = True
    for other, stride in zip(operand_shapes, operand_strides):
        if len(other) != ndim or other != shape:
            break
        if stride != first:
            same = False
    else:
        if same:
            if is_contiguous(shape, first):
                return contiguous_strides(shape)
            if ndim == 4 and is_channels_last(shape, first):
                return channels_last_strides(shape)
            if is_non_overlapping_and_dense(shape, first):
                return tuple(first)
        elif all(is_contiguous(shape, stride) for stride in operand_strides):
            return contiguous_strides(shape)
        elif ndim == 4 and all(is_channels_last(shape, stride) for stride in operand_strides):
            return channels_last_strides(shape)
    if ndim == 1:
        return (1,)

    aligned = []
    for sizes, stride in zip(operand_shapes, operand_strides, strict=True):
        lead = ndim - len(sizes)
        aligned.append(
            [0] * lead
            + [
                0 if sizes[i] == 1 and shape[lead + i] != 1 else stride[i]
                for i in range(len(sizes))
            ]
        )

    def compare(a: int, b: int) -> int:
        for strides in aligned:
            sa, sb = strides[a], strides[b]
            if sa == 0 or sb == 0:
                continue
            if sa != sb:
                return -1 if sa < sb else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    perm = _sort_dims(ndim, compare)
    if perm == list(range(ndim - 1, -1, -1)):
        return contiguous_strides(shape)
    out = [0] * ndim
    running = 1
    for d in perm:
        out[d] = running
        running *= shape[d]  # a size of 0 does zero the outer strides here, as in PyTorch
    return tuple(out)


def reduction_strides(
    shape: Shape, dims: int | Sequence[int] | None, keepdim: bool = False, op: str = ""
) -> Shape:
    """Strides of a reduction's result: row-major, whatever the operand's layout.

    Arguments and errors as `reduction_shape`.
    """
    return contiguous_strides(reduction_shape(shape, dims, keepdim, op))
