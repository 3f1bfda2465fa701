"""Layouts that share memory: each function maps (shape, stride[, offset]) to that of the view."""

from __future__ import annotations

from collections.abc import Sequence

from torchlab._core.layout.shape import Shape, infer_size, numel, prefix, wrap_dim, wrap_dims
from torchlab._core.layout.strides import contiguous_strides

Layout = tuple[Shape, Shape]
OffsetLayout = tuple[Shape, Shape, int]


def expand(shape: Shape, stride: Shape, target: Sequence[int], op: str = "expand") -> Layout:
    """Dims of size 1, and new leading dims, repeated to `target` with stride 0; -1 keeps a size.

    Raises RuntimeError when `target` has fewer dims, changes a size other than 1, or asks for -1
    in a new dim.
    """
    lead = len(target) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"{prefix(op)}the number of sizes provided ({len(target)}) must be greater or equal to"
            f" the number of dimensions in the tensor ({len(shape)}); sizes {list(target)},"
            f" tensor {list(shape)}"
        )
    sizes = list(target)
    strides = [0] * len(sizes)
    for i in range(len(sizes) - 1, -1, -1):
        want = sizes[i]
        if i >= lead:
            size, step = shape[i - lead], stride[i - lead]
            if want == -1:
                want = size
        else:
            if want < 0:
                raise RuntimeError(
                    f"{prefix(op)}The expanded size of the tensor ({want}) isn't allowed in a"
                    f" leading, non-existing dimension {i}"
                )
            size = 1
            # The stride a new dim of size 1 would have; a 0-d tensor's new dims get 0.
            step = sizes[i + 1] * strides[i + 1] if shape else 0
        if size != want:
            if size != 1 or want < 0:
                raise RuntimeError(
                    f"{prefix(op)}The expanded size of the tensor ({want}) must match the existing"
                    f" size ({size}) at non-singleton dimension {i}.  Target sizes:"
                    f" {list(target)}.  Tensor sizes: {list(shape)}"
                )
            step = 0
        sizes[i] = want
        strides[i] = step
    return tuple(sizes), tuple(strides)


def _runs(shape: Shape, stride: Shape) -> list[tuple[int, int, int]]:
    """The groups of dims that memory lets merge, innermost first: (first dim, elements, step).

    Within a run, counting through its dims in row-major order moves by a constant step.
    """
    runs = []
    count, step = 1, stride[-1]
    for d in range(len(shape) - 1, -1, -1):
        count *= shape[d]
        if d == 0:
            runs.append((0, count, step))
        elif shape[d - 1] != 1 and stride[d - 1] != count * step:
            runs.append((d, count, step))
            count, step = 1, stride[d - 1]
    return runs


def view_strides(shape: Shape, stride: Shape, new_shape: Shape) -> Shape | None:
    """Strides of the same memory seen as `new_shape` (no -1, same number of elements), or None
    where one new dim would have to span two runs of memory."""
    if 0 in shape:
        return tuple(stride) if shape == new_shape else contiguous_strides(new_shape)
    if not shape:
        return (1,) * len(new_shape)
    out = [0] * len(new_shape)
    d = len(new_shape) - 1
    for _, count, step in _runs(shape, stride):
        filled = 1
        while d >= 0 and (filled < count or new_shape[d] == 1):
            out[d] = filled * step
            filled *= new_shape[d]
            d -= 1
        if filled != count:
            return None
    return tuple(out) if d < 0 else None


def view(shape: Shape, stride: Shape, new_shape: Sequence[int], op: str = "") -> Layout:
    """The layout of `tensor.view(new_shape)`; one size may be -1.

    Raises RuntimeError as `infer_size`, and when the view would need a copy.
    """
    sizes = infer_size(new_shape, numel(shape), op)
    strides = view_strides(shape, stride, sizes)
    if strides is None:
        raise RuntimeError(
            f"{prefix(op)}view size is not compatible with input tensor's size and stride (at least"
            " one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            f" [{why_view_fails(shape, stride, sizes)}]"
        )
    return sizes, strides


def why_view_fails(shape: Shape, stride: Shape, new_shape: Sequence[int]) -> str | None:
    """A sentence that names the new dim that spans two runs of memory, and the old dims where the
    runs meet; None where the view exists. Raises RuntimeError as `infer_size`."""
    sizes = infer_size(new_shape, numel(shape))
    if view_strides(shape, stride, sizes) is not None:
        return None
    d = len(sizes) - 1
    first = 0
    for run_start, count, _ in _runs(shape, stride):
        first, filled = run_start, 1
        while d >= 0 and (filled < count or sizes[d] == 1):
            filled *= sizes[d]
            d -= 1
        if filled != count:
            break
    inner_dims = [i for i in range(first, len(shape)) if shape[i] != 1]
    inner = inner_dims[0] if inner_dims else first
    return (
        f"new dim {d + 1} (size {sizes[d + 1]}) would span dims {first - 1} and {inner} of the"
        f" tensor of shape {list(shape)} and strides {list(stride)}, but one step along dim"
        f" {first - 1} moves {stride[first - 1]} elements and dim {inner} inside it spans"
        f" {shape[inner]} x {stride[inner]} = {shape[inner] * stride[inner]}"
    )


def permute(shape: Shape, stride: Shape, dims: Sequence[int], op: str = "permute") -> Layout:
    """Dims in the order of `dims`. Raises RuntimeError for a wrong number of dims or a dim named
    twice, IndexError for one out of range."""
    ndim = len(shape)
    if len(dims) != ndim:
        raise RuntimeError(
            f"{prefix(op)}number of dimensions in the tensor input does not match the length of the"
            f" desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to"
            f" len(dims) = {len(dims)}"
        )
    order: list[int] = []
    for given in dims:
        dim = wrap_dim(given, ndim, op)
        if dim in order:
            raise RuntimeError(
                f"{op or 'permute'}(): duplicate dims are not allowed. Got {list(dims)}"
            )
        order.append(dim)
    return tuple([shape[d] for d in order]), tuple([stride[d] for d in order])


def transpose(shape: Shape, stride: Shape, dim0: int, dim1: int, op: str = "") -> Layout:
    """Two dims exchanged. Raises IndexError for a dim out of range."""
    ndim = len(shape)
    a, b = wrap_dim(dim0, ndim, op), wrap_dim(dim1, ndim, op)
    if a == b:
        return tuple(shape), tuple(stride)
    sizes, strides = list(shape), list(stride)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    strides[a], strides[b] = strides[b], strides[a]
    return tuple(sizes), tuple(strides)


def squeeze(
    shape: Shape, stride: Shape, dim: int | Sequence[int] | None = None, op: str = ""
) -> Layout:
    """Without the dims of size 1: all (None), or those among `dim`; others are left as they are.

    Raises IndexError for a dim out of range, RuntimeError for one named twice.
    """
    ndim = len(shape)
    if dim is None:
        keep = [d for d in range(ndim) if shape[d] != 1]
    else:
        if isinstance(dim, Sequence):
            chosen = wrap_dims(dim, ndim, op)
        else:
            chosen = (wrap_dim(dim, ndim, op),)
        keep = [d for d in range(ndim) if shape[d] != 1 or d not in chosen]
    return tuple([shape[d] for d in keep]), tuple([stride[d] for d in keep])


def unsqueeze(shape: Shape, stride: Shape, dim: int, op: str = "") -> Layout:
    """With a new dim of size 1 at `dim`. Raises IndexError outside [-ndim - 1, ndim]."""
    ndim = len(shape)
    dim = wrap_dim(dim, ndim + 1, op)
    step = shape[dim] * stride[dim] if dim < ndim else 1
    return (*shape[:dim], 1, *shape[dim:]), (*stride[:dim], step, *stride[dim:])


def select(
    shape: Shape, stride: Shape, offset: int, dim: int, index: int, op: str = "select"
) -> OffsetLayout:
    """The slice at `index` of `dim`, without that dim. Raises IndexError for a 0-d layout, a dim
    out of range, or an index outside [-size, size - 1]."""
    if not shape:
        raise IndexError(f"{op or 'select'}() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape), op)
    size = shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"{op or 'select'}(): index {index} out of range for tensor of size {list(shape)}"
            f" at dimension {dim}"
        )
    if index < 0:
        index += size
    return (
        (*shape[:dim], *shape[dim + 1 :]),
        (*stride[:dim], *stride[dim + 1 :]),
        offset + index * stride[dim],
    )


def slice_(
    shape: Shape,
    stride: Shape,
    offset: int,
    dim: int,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    op: str = "slice",
) -> OffsetLayout:
    """`[start:end:step]` of `dim`; ends count from the back when negative and are clamped.

    Raises IndexError for a 0-d layout or a dim out of range, RuntimeError for a step below 1.
    """
    if not shape:
        raise IndexError(f"{op or 'slice'}() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape), op)
    if step <= 0:
        raise RuntimeError(f"{prefix(op)}slice step must be positive, but got {step}")
    size = shape[dim]
    begin = 0 if start is None else start
    stop = size if end is None else end
    if begin < 0:
        begin += size
        if begin < 0:
            begin = 0
    elif begin > size:
        begin = size
    if stop < 0:
        stop += size
    if stop < begin:
        stop = begin
    elif stop > size:
        stop = size
    return (
        (*shape[:dim], (stop - begin + step - 1) // step, *shape[dim + 1 :]),
        (*stride[:dim], stride[dim] * step, *stride[dim + 1 :]),
        offset + begin * stride[dim],
    )


def unfold(shape: Shape, stride: Shape, dim: int, size: int, step: int, op: str = "") -> Layout:
    """Windows of `size` every `step` along `dim`: dim counts the windows, a new last dim runs
    inside them.

    Raises IndexError for a dim out of range, RuntimeError for a size that is negative or larger
    than the dim, or a step below 1.
    """
    ndim = len(shape)
    dim = wrap_dim(dim, ndim, op)
    room = shape[dim] if ndim else 1
    if size < 0:
        raise RuntimeError(f"{prefix(op)}size is {size} but must be >= 0")
    if size > room:
        raise RuntimeError(
            f"{prefix(op)}maximum size for tensor at dimension {dim} is {room} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"{prefix(op)}step is {step} but must be > 0")
    if ndim == 0:
        return (size,), (1,)
    windows = (room - size) // step + 1
    return (
        (*shape[:dim], windows, *shape[dim + 1 :], size),
        (*stride[:dim], stride[dim] * step, *stride[dim + 1 :], stride[dim]),
    )


def diagonal(
    shape: Shape,
    stride: Shape,
    offset0: int,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    op: str = "",
) -> OffsetLayout:
    """The diagonal of two dims as a new last dim; `offset` > 0 lies above the main one, < 0 below.
    `offset0` is the storage offset.

    Raises IndexError for a dim out of range, RuntimeError for identical dims.
    """
    ndim = len(shape)
    a, b = wrap_dim(dim1, ndim, op), wrap_dim(dim2, ndim, op)
    if a == b:
        raise RuntimeError(f"{prefix(op)}diagonal dimensions cannot be identical {dim1}, {dim2}")
    if offset >= 0:
        length = max(min(shape[a], shape[b] - offset), 0)
        start = offset * stride[b]
    else:
        length = max(min(shape[a] + offset, shape[b]), 0)
        start = -offset * stride[a]
    keep = [d for d in range(ndim) if d not in (a, b)]
    return (
        (*[shape[d] for d in keep], length),
        (*[stride[d] for d in keep], stride[a] + stride[b]),
        offset0 + start if length else offset0,
    )


def movedim(
    shape: Shape,
    stride: Shape,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    op: str = "movedim",
) -> Layout:
    """The dims `source` moved to the places `destination`; the others keep their order.

    Raises IndexError for a dim out of range, RuntimeError when the numbers of dims differ or a dim
    is repeated.
    """
    ndim = len(shape)
    src = source if isinstance(source, Sequence) else (source,)
    dst = destination if isinstance(destination, Sequence) else (destination,)
    if len(src) != len(dst):
        raise RuntimeError(
            f"{prefix(op)}Invalid source or destination dims: source ({list(src)} dims) should"
            f" contain the same number of dims as destination ({list(dst)} dims)"
        )
    froms = [wrap_dim(d, ndim, op) for d in src]
    tos = [wrap_dim(d, ndim, op) for d in dst]
    for name, dims, given in (("source", froms, src), ("destination", tos, dst)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"{prefix(op)}repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return (), ()
    rest = iter([d for d in range(ndim) if d not in froms])
    place = dict(zip(tos, froms, strict=True))
    order = [place[i] if i in place else next(rest) for i in range(ndim)]
    return tuple([shape[d] for d in order]), tuple([stride[d] for d in order])
