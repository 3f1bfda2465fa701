"""`torchlab.autograd.functional`: products with Jacobians and Hessians, and the whole matrices.

    jacobian(f, (x, y))      hvp(f, x, v)      vjp(f, x, v)

Functions get leaves of their own in place of the inputs, so nothing arrives in `.grad`. With
`create_graph` results can be differentiated with respect to inputs that require a gradient.
`strict` raises where a result does not depend on an input instead of giving zeros.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#functional-higher-level-api
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import api, forward_ad
from torchlab.autograd.grad_mode import enable_grad, is_grad_enabled, set_grad_enabled
from torchlab.autograd.unit_vectors import mapped_rows, unit_vectors

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Any, ...]
Given = Any  # a tensor or a tuple of tensors
_STRICT = "This is not allowed in strict mode"


# ---- arguments ----------------------------------------------------------------------------------


def _as_tuple(x: Given, what: str, name: str) -> tuple[bool, Tensors]:
    """Whether it was a tuple, and the tensors as one."""
    many = isinstance(x, tuple)
    parts: Any = x if many else (x,)
    for i, t in enumerate(parts):
        if not isinstance(t, Tensor):
            found = f"the value at index {i}" if many else f"the given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but"
                f" {found} has type {type(t)}."
            )
    return many, parts


def _fresh(inputs: Tensors, create_graph: bool) -> Tensors:
    """Stand-ins for the inputs: leaves, or views where the result is to lead back to the input."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()
        for x in inputs
    )


def _result(many: bool, tensors: Tensors, create_graph: bool) -> Given:
    if not create_graph:
        tensors = tuple(t.detach() for t in tensors)
    return tensors if many else tensors[0]


def _vector(v: Given, like: Tensors, many: bool, create_graph: bool, name: str) -> Tensors:
    """The given vector, checked against what it is multiplied with."""
    _, parts = _as_tuple(v, "v", name)
    if len(parts) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(parts)}."
            if many
            else "The given v should contain a single Tensor."
        )
    for i, (a, b) in enumerate(zip(parts, like, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(
                f"{f'Entry {i} in ' if many else ''}v has invalid size: should be {b.shape} but got"
                f" {a.shape}."
            )
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(False)
        for t in parts
    )


def _call(func: Callable[..., Any], inputs: Tensors, name: str) -> tuple[bool, Tensors]:
    return _as_tuple(func(*inputs), "outputs of the user-provided function", name)


def _scalar(func: Callable[..., Any], inputs: Tensors, strict: bool, name: str) -> Tensor:
    """The function's single number, as the tensor that it returned."""
    many, outputs = _call(func, inputs, name)
    _need_history(outputs, strict, _no_history)
    if many:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )
    return outputs[0]


def _vector_of_one(inputs: Tensors, many: bool) -> Tensors:
    """What a missing vector is taken for, if there is a single input with a single element."""
    if many or inputs[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single"
            " Tensor with a single element."
        )
    return (aten.ones_like(inputs[0]),)


def _vector_or_one(v: Given, like: Tensors, many: bool, create_graph: bool, name: str) -> Tensors:
    if v is None:
        return _vector_of_one(like, many)
    return _vector(v, like, many, create_graph, name)


# ---- gradients ----------------------------------------------------------------------------------


def _grad(
    outputs: Sequence[Any], inputs: Tensors, vectors: Sequence[Any] | None, **options: Any
) -> Tensors:
    """autograd.grad of those outputs that have a history; None for inputs they do not reach."""
    vectors = (None,) * len(outputs) if vectors is None else vectors
    pairs = [
        (o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    return api.grad(
        [o for o, _ in pairs], inputs, [v for _, v in pairs], allow_unused=True, **options
    )


def _need_history(tensors: Tensors, strict: bool, text: str) -> None:
    """In strict mode: every tensor has to depend on the inputs."""
    if strict:
        for i, t in enumerate(tensors):
            if t is None:
                raise RuntimeError(_independent.format(i))
            if not t.requires_grad:
                raise RuntimeError(text.format(i))


_independent = f"The output of the user-provided function is independent of input {{}}. {_STRICT}."
_no_history = (
    "Output {} of the user-provided function does not require gradients. The outputs must be"
    " computed in a differentiable manner from the input when running in strict mode."
)
_linear = (
    "While computing the hessian, found that the jacobian of the user-provided function with"
    f" respect to input {{}} is independent of the input. {_STRICT}. You should ensure that your"
    " function is twice differentiable and that the jacobian depends on the inputs (this would be"
    " violated by a linear function for example)."
)
_no_gradient_history = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided"
    f" function. {_STRICT}."
)


def _filled(
    grads: Tensors, like: Tensors, strict: bool, create_graph: bool, missing: str, of: str
) -> Tensors:
    """Zeros where there is no gradient; in strict mode errors."""
    found = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(missing.format(i))
            g = aten.zeros_like(x)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {of} of the user-provided function is independent of input {i}. {_STRICT}"
                " when create_graph=True."
            )
        found.append(g)
    return tuple(found)


def _zeros(tensors: Tensors) -> Tensors:
    """Vectors of which a gradient is linear: differentiating by them applies its transpose."""
    return tuple(aten.zeros_like(t).requires_grad_() for t in tensors)


# ---- products -----------------------------------------------------------------------------------


def vjp(
    func: Callable[..., Any],
    inputs: Given,
    v: Given = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Given, Given]:
    """`func(*inputs)`, and vᵀ·J: shapes of the outputs for v, of the inputs for the product.
    v may be missing if the output is a single number."""
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "vjp")
        leaves = _fresh(given, create_graph)
        many_out, outputs = _call(func, leaves, "vjp")
        _need_history(outputs, strict, _no_history)
        vectors = None
        if v is not None:
            vectors = _vector(v, outputs, many_out, create_graph, "vjp")
        elif len(outputs) != 1 or outputs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single"
                " Tensor with a single element."
            )
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grad(outputs, leaves, vectors, create_graph=create_graph)
        product = _filled(grads, leaves, strict, create_graph, _independent, "jacobian")
    return _result(many_out, outputs, create_graph), _result(many, product, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Given,
    v: Given = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Given, Given]:
    """`func(*inputs)`, and J·v: shapes of the inputs for v, of the outputs for the product.
    v may be missing if the input is a single number. It runs backward twice: uᵀ·J is linear in u,
    and its gradient with respect to u is J·v."""
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "jvp")
        leaves = _fresh(given, create_graph)
        vectors = _vector_or_one(v, leaves, many, create_graph, "jvp")
        many_out, outputs = _call(func, leaves, "jvp")
        _need_history(outputs, strict, _no_history)
        u = _zeros(outputs)
        grads = _grad(outputs, leaves, u, create_graph=True)
        _need_history(grads, strict, _no_gradient_history)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _grad(grads, u, vectors, create_graph=create_graph)
        product = _filled(found, outputs, strict, create_graph, _no_transpose, "jacobian")
    return _result(many_out, outputs, create_graph), _result(many_out, product, create_graph)


_no_transpose = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when"
    f" using the double backward trick to compute forward mode gradients. {_STRICT}."
)


def _with_gradient(
    func: Callable[..., Any], inputs: Given, v: Given, create_graph: bool, strict: bool, name: str
) -> tuple[bool, Tensors, Tensors, Any, Tensors]:
    """What products with a Hessian begin with: whether there are many inputs, their stand-ins, the
    vectors, the function's single number and its gradient."""
    many, given = _as_tuple(inputs, "inputs", name)
    leaves = _fresh(given, create_graph)
    vectors = _vector_or_one(v, leaves, many, create_graph, name)
    output = _scalar(func, leaves, strict, name)
    gradient = _grad((output,), leaves, None, create_graph=True)
    _need_history(gradient, strict, _linear)
    return many, leaves, vectors, output, gradient


def vhp(
    func: Callable[..., Any],
    inputs: Given,
    v: Given = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Given, Given]:
    """`func(*inputs)`, a single number, and vᵀ·H: one backward through the gradient."""
    with enable_grad():
        many, leaves, vectors, output, gradient = _with_gradient(
            func, inputs, v, create_graph, strict, "vhp"
        )
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _grad(gradient, leaves, vectors, create_graph=create_graph)
        product = _filled(found, leaves, strict, create_graph, _no_second, "hessian")
    return _result(False, (output,), create_graph), _result(many, product, create_graph)


_no_second = f"The jacobian of the user-provided function is independent of input {{}}. {_STRICT}."


def hvp(
    func: Callable[..., Any],
    inputs: Given,
    v: Given = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Given, Given]:
    """`func(*inputs)`, a single number, and H·v, by running backward once more than `vhp`. The
    Hessian of a twice continuously differentiable function is symmetric; then `vhp` is faster."""
    with enable_grad():
        many, leaves, vectors, output, gradient = _with_gradient(
            func, inputs, v, create_graph, strict, "hvp"
        )
        u = _zeros(leaves)
        second = _grad(gradient, leaves, u, create_graph=True)
        _need_history(second, strict, _linear)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _grad(second, u, vectors, create_graph=create_graph)
        product = _filled(found, leaves, strict, create_graph, _no_symmetric, "hessian")
    return _result(False, (output,), create_graph), _result(many, product, create_graph)


_no_symmetric = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian."
    f" {_STRICT} as it prevents from using the double backward trick to replace forward mode AD."
)


# ---- matrices -----------------------------------------------------------------------------------


def jacobian(
    func: Callable[..., Any],
    inputs: Given,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of every output by every input: a tensor of shape output.shape +
    input.shape; a tuple for several inputs, for several outputs a tuple of those.

    vectorize: all rows with one `grad` call, all at once as with `torch.func.vmap`.
    strategy: "reverse-mode" goes by rows, "forward-mode" by columns (needs vectorize).
    """
    _check_strategy(
        strategy,
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function'
        ' has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise,'
        ' prefer to use "reverse-mode".',
    )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "jacobian")
        leaves = _fresh(given, create_graph)
        many_out, outputs = _call(func, leaves, "jacobian")
        _need_history(outputs, strict, _no_history)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are"
                    " not supported together. Please either set `strict=False` or"
                    " `vectorize=False`."
                )
            rows = _all_rows(outputs, leaves, create_graph)
        else:
            rows = tuple(_rows(i, o, leaves, create_graph, strict) for i, o in enumerate(outputs))
    found = tuple(_result(many, row, create_graph) for row in rows)
    return found if many_out else found[0]


def _check_strategy(strategy: str, text: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(text)


def _rows(i: int, output: Any, leaves: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one output by each input, one backward for each element."""
    columns: list[list[Any]] = [[] for _ in leaves]
    for element in output.reshape(-1).unbind(0):
        grads = _grad((element,), leaves, None, retain_graph=True, create_graph=create_graph)
        filled = _filled(
            grads,
            leaves,
            strict,
            create_graph,
            f"Output {i} of the user-provided function is independent of input {{}}. {_STRICT}.",
            "jacobian",
        )
        for column, g in zip(columns, filled, strict=True):
            column.append(g)
    return tuple(
        aten.stack(column).view(output.shape + x.shape)
        for column, x in zip(columns, leaves, strict=True)
    )


def _all_rows(outputs: Tensors, leaves: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    vectors = unit_vectors(outputs)
    n = sum(o.numel() for o in outputs)

    def row(*v: Any) -> Tensors:
        return _grad(outputs, leaves, v, retain_graph=True, create_graph=create_graph)

    grads = mapped_rows(row, vectors)
    sizes = [o.numel() for o in outputs]
    blocks = []
    for g, x in zip(grads, leaves, strict=True):
        if g is None:
            g = aten.zeros((n, *x.shape), dtype=x.dtype, device=x.device)
        blocks.append(
            [b.view(o.shape + x.shape) for b, o in zip(g.split(sizes), outputs, strict=True)]
        )
    return tuple(zip(*blocks, strict=True))


def _forward_jacobian(
    func: Callable[..., Any], inputs: Given, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """By columns: the tangents that every unit vector of the inputs brings. Inputs that require a
    gradient keep their history, and so does the result."""
    where = "torch.autograd.functional.jacobian"
    if create_graph:
        raise NotImplementedError(
            f'{where}: `create_graph=True` and `strategy="forward-mode"` are not supported together'
            ' (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            f'{where}: `strict=True` and `strategy="forward-mode"` are not supported together'
            ' (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented"
            " for `vectorize=True`."
        )
    many, given = _as_tuple(inputs, "inputs", "jacobian")
    many_out = False
    facts: list[Any] = []  # of each output: its shape and type

    def column(*vectors: Any) -> Tensors:
        nonlocal many_out
        duals = tuple(forward_ad.make_dual(x, v) for x, v in zip(given, vectors, strict=True))
        many_out, outputs = _call(func, duals, "jacobian")
        parts = [forward_ad.unpack_dual(o) for o in outputs]
        facts[:] = [(v.shape, {"dtype": v.dtype, "device": v.device}) for v, _ in parts]
        return tuple(t for _, t in parts)

    with forward_ad.dual_level():
        tangents = mapped_rows(column, unit_vectors(given))
    keep = any(x.requires_grad for x in given)
    sizes = [x.numel() for x in given]
    found = []
    for t, (shape, kind) in zip(tangents, facts, strict=True):
        every = aten.zeros((*shape, sum(sizes)), **kind) if t is None else t.movedim(0, -1)
        row = tuple(
            b.reshape(b.shape[:-1] + x.shape)
            for b, x in zip(every.split(sizes, -1), given, strict=True)
        )
        found.append(_result(many, row, keep))
    return tuple(found) if many_out else found[0]


def hessian(
    func: Callable[..., Any],
    inputs: Given,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that returns a single number: a tensor of shape
    input.shape + input.shape; for several inputs a tuple of tuples.

    vectorize, outer_jacobian_strategy: see `jacobian`; how the Jacobian of the gradient is found.
    """
    many, given = _as_tuple(inputs, "inputs", "hessian")
    _check_strategy(
        outer_jacobian_strategy,
        'Expected strategy to be either "forward-mode" or "reverse-mode".',
    )

    def single(*args: Any) -> Any:
        return _scalar(func, args, strict, "hessian").squeeze()

    def gradient(*args: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            for x in args:
                x.requires_grad_()
        found = jacobian(single, args, create_graph=True)
        _need_history(found, strict, _linear)
        return found

    found = jacobian(
        gradient,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return found if many else found[0][0]
