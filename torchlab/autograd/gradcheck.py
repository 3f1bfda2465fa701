"""gradcheck and gradgradcheck: the tape, and forward mode, against finite differences.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.autograd.gradcheck.gradcheck.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import api, forward_ad
from torchlab.autograd.function import Function


class GradcheckError(RuntimeError):
    """The analytical and the numerical gradient differ."""


def _outputs(r: Any) -> list[Tensor]:
    parts = r if isinstance(r, (tuple, list)) else (r,)
    return [t for t in parts if isinstance(t, Tensor) and t._k.differentiable]


def _numerical(
    fn: Callable[..., Any], inputs: tuple[Any, ...], i: int, out: int, eps: float
) -> np.ndarray:
    """Rows: elements of input i, columns: elements of output `out`. Complex inputs give a pair of
    rows."""
    x = inputs[i]._a
    rows = []
    flat = np.ndindex(*x.shape)
    steps = (eps, 1j * eps) if x.dtype.kind == "c" else (eps,)
    for at in flat:
        for step in steps:
            keep = x[at].copy()
            x[at] = keep + step  # on the array: the tape must not take it for a write
            high = _outputs(fn(*inputs))[out]._a.copy()
            x[at] = keep - step
            low = _outputs(fn(*inputs))[out]._a.copy()
            x[at] = keep
            rows.append(((high - low) / (2 * eps)).ravel())
    n = _numel(x.shape)
    width = rows[0].size if rows else _outputs(fn(*inputs))[out]._a.size
    return np.array(rows).reshape(n * len(steps), width)


def _numel(shape: Any) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def _analytical(output: Tensor, x: Tensor, create: bool = False) -> np.ndarray:
    columns = []
    size = output._a.size
    parts = (1, 1j) if output._k.dtype.is_complex else (1,)
    for j in range(size):
        for part in parts:
            g = np.zeros(output._a.shape, output._a.dtype)
            g.reshape(-1)[j] = part
            r = api.grad(output, x, aten.tensor(g), retain_graph=True, allow_unused=True)[0]
            columns.append(
                np.zeros(x._a.size, x._a.dtype) if r is None else np.asarray(r._a).ravel()
            )
    return np.array(columns).reshape(size * len(parts), x._a.size)


def _batched(output: Tensor, inputs: list[Tensor]) -> None:
    """All columns at once must give what they give one by one."""
    n = output._a.size
    g = np.random.default_rng(0).standard_normal((min(n, 3) or 1, *output._a.shape))
    rows = aten.tensor(g.astype(output._a.dtype))
    options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
    together = api.grad(output, inputs, rows, is_grads_batched=True, **options)
    for j in range(len(rows)):
        for a, b in zip(together, api.grad(output, inputs, rows[j], **options), strict=True):
            if a is not None and not np.allclose(a[j]._a, b._a):
                raise GradcheckError(
                    "Jacobian computed with the derivatives of many outputs at once differs from"
                    " the one computed one by one"
                )


def _forward(func: Callable[..., Any], inputs: Sequence[Any], i: int, out: int) -> np.ndarray:
    """The Jacobian by forward mode, in the form of `_numerical`."""
    x = inputs[i]
    rows = []
    for at in np.ndindex(*x._a.shape):
        for step in (1, 1j) if x._k.dtype.is_complex else (1,):
            t = np.zeros(x._a.shape, x._a.dtype)
            t[at] = step
            with forward_ad.dual_level():
                args = [y.detach() if isinstance(y, Tensor) else y for y in inputs]
                args[i] = forward_ad.make_dual(args[i], aten.tensor(t))
                primal, tangent = forward_ad.unpack_dual(_outputs(func(*args))[out])
                if tangent is None:
                    tangent = aten.zeros_like(primal)
                rows.append(np.array(tangent._a).ravel())
    steps = 2 if x._k.dtype.is_complex else 1
    width = rows[0].size if rows else _outputs(func(*inputs))[out]._a.size
    return np.array(rows).reshape(x._a.size * steps, width)


def _fast(
    func: Callable[..., Any], inputs: tuple[Any, ...], i: int, out: int, eps: float
) -> tuple[float, float]:
    """The numerical and the analytical derivative along one random direction, weighted at random:
    one number for a Jacobian."""
    rng = np.random.default_rng(0)

    def direction(t: Tensor) -> np.ndarray:
        u = rng.random(t._a.shape)
        if t._k.dtype.is_complex:
            u = u + 1j * rng.random(t._a.shape)
        return (u / (np.linalg.norm(u) or 1.0)).astype(t._a.dtype)

    x = inputs[i]._a
    outputs = _outputs(func(*inputs))
    u, v = direction(inputs[i]), direction(outputs[out])
    keep = x.copy()
    x[...] = keep + eps * u  # on the array: the tape must not take it for a write
    high = _outputs(func(*inputs))[out]._a.copy()
    x[...] = keep - eps * u
    low = _outputs(func(*inputs))[out]._a.copy()
    x[...] = keep
    numerical = float(np.real(np.sum(np.conj(v) * (high - low) / (2 * eps))))
    if not outputs[out].requires_grad:
        return numerical, 0.0
    (g,) = api.grad(outputs[out], inputs[i], aten.tensor(v), allow_unused=True)
    analytical = 0.0 if g is None else float(np.real(np.sum(np.conj(g._a) * u)))
    return numerical, analytical


class _Undefined(Function):
    """Hands its input on; backward gives no gradient at all."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Any:
        return tuple(x.detach() for x in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def _undefined(func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int]) -> None:
    """Missing gradients of outputs must count as zeros."""
    xs = [inputs[i] for i in wanted]

    def check(missing: set[int]) -> None:
        outputs = [o for o in _outputs(func(*inputs)) if o.requires_grad]
        given = [
            _Undefined.apply(o)[0] if j in missing or j % 2 else o for j, o in enumerate(outputs)
        ]
        seeds = [aten.zeros_like(o) for o in given]
        for g in api.grad(given, xs, seeds, allow_unused=True):
            if g is not None and bool((g != 0).any()):
                raise GradcheckError(
                    "Expected all gradients to be None or zero where the gradients of the outputs"
                    " are undefined: backward must handle None as zeros"
                )

    n = sum(o.requires_grad for o in _outputs(func(*inputs)))
    if n:
        check(set(range(n)))
        if n > 1:
            for j in range(n):
                check({j})


def _check_inputs(inputs: tuple[Any, ...]) -> list[int]:
    wanted = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have"
            " requires_grad=True."
        )
    for i in wanted:
        t = inputs[i]
        if t._k.dtype.itemsize < (16 if t._k.dtype.is_complex else 8):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or"
                " complex. This check will likely fail if all the inputs are not of double"
                " precision floating point or complex.",
                stacklevel=4,
            )
        if any(n > 1 and s == 0 for n, s in zip(t._a.shape, t._a.strides, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs"
                " that are non-overlapping to be able to compute the numerical gradients correctly."
                " You should call .contiguous on the input before passing it to gradcheck."
            )
    return wanted


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` at double-precision `inputs` agree with finite differences.
    Raises GradcheckError with both matrices if they do not (or returns False).

    nondet_tol: how much two backward passes may differ. check_undefined_grad: missing gradients of
    outputs must count as zeros. check_grad_dtypes: gradients must have their inputs' types.
    check_batched_grad: many gradients at once must give the same. check_forward_ad: compare forward
    mode, too. fast_mode: one random direction instead of the whole Jacobian. masked: of sparse
    inputs; dense ones have no mask.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        wanted = _check_inputs(inputs)
        outputs = _outputs(func(*inputs))
        for k, o in enumerate(outputs):
            for i in wanted:
                _compare(
                    func, inputs, i, k, o, (eps, atol, rtol), fast_mode, check_backward_ad,
                    check_forward_ad,
                )  # fmt: skip
        if check_backward_ad:
            for o in outputs:
                if o.requires_grad:
                    _check_backward(o, [inputs[i] for i in wanted], nondet_tol, check_grad_dtypes)
                    if check_batched_grad:
                        _batched(o, [inputs[i] for i in wanted])
            if check_undefined_grad:
                _undefined(func, inputs, wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(
    func: Any, inputs: Any, i: int, k: int, o: Tensor, numbers: Any, fast: bool, back: bool,
    forward: bool,
) -> None:  # fmt: skip
    """One output with respect to one input."""
    eps, atol, rtol = numbers
    if fast and back:
        a, b = _fast(func, inputs, i, k, eps)
        if not np.isclose(a, b, rtol, atol, equal_nan=True):
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input {i},\nnumerical:{a}\n"
                f"analytical:{b}\n\nThe above quantities relating the numerical and analytical"
                " jacobians are computed in fast mode, along one random direction."
            )
        if not forward:
            return
    numerical = _numerical(func, inputs, i, k, eps)
    if back and not fast:
        analytical = (
            _analytical(o, inputs[i])
            if o.requires_grad
            else np.zeros((o._a.size * (2 if o._k.dtype.is_complex else 1), inputs[i]._a.size))
        )
        if not _agree(numerical, analytical, inputs[i], o, atol, rtol):
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input"
                f" {i},\nnumerical:{numerical}\nanalytical:{analytical.T}\n"
            )
    if forward:
        analytical = _forward(func, inputs, i, k)
        if not np.allclose(numerical, analytical, rtol, atol, equal_nan=True):
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input {i} in forward mode,\n"
                f"numerical:{numerical}\nanalytical:{analytical}\n"
            )


def _check_backward(o: Tensor, xs: list[Tensor], nondet_tol: float, dtypes: bool) -> None:
    """Twice the same, and in the inputs' types."""
    seed = aten.tensor(np.random.default_rng(0).standard_normal(o._a.shape).astype(o._a.dtype))
    first, second = (api.grad(o, xs, seed, retain_graph=True, allow_unused=True) for _ in range(2))
    for x, a, b in zip(xs, first, second, strict=True):
        if a is None:
            continue
        if dtypes and a.dtype is not x.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch: {a.dtype} for {x.dtype}")
        if a._a.size and float(np.max(np.abs(a._a - b._a))) > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output"
                " multiple times gives different values, although analytical gradient matches"
                f" numerical gradient. The tolerance for nondeterminism was {nondet_tol}."
            )


def _agree(
    numerical: np.ndarray, analytical: np.ndarray, x: Tensor, o: Tensor, atol: float, rtol: float
) -> bool:
    if numerical.size == 0:
        return True
    complex_in, complex_out = x._k.dtype.is_complex, o._k.dtype.is_complex
    n, m = x._a.size, o._a.size
    if not complex_in and not complex_out:
        return bool(np.allclose(numerical, analytical.T, rtol, atol, equal_nan=True))
    # Compare as real Jacobians: the gradient g of L = Re(conj(v) · f) has parts dL/dRe x and dL/dIm
    # x.
    j = numerical.reshape(n, 2 if complex_in else 1, m)
    a = analytical.reshape(m, 2 if complex_out else 1, n)
    expected = np.stack(
        [j.real, j.imag] if complex_out else [j.real]
    )  # (part of v, n, parts of x, m)
    got = np.stack([a.real, a.imag] if complex_in else [a.real])  # (parts of x, m, part of v, n)
    return bool(np.allclose(expected, got.transpose(2, 3, 0, 1), rtol, atol, equal_nan=True))


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradient itself. gen_non_contig_grad_outputs: the gradients of the outputs
    that are made here have gaps in memory."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = _outputs(func(*inputs))
    if grad_outputs is None:
        grads = tuple(_seeds(outputs, gen_non_contig_grad_outputs))
    else:
        grads = grad_outputs if isinstance(grad_outputs, tuple) else (grad_outputs,)
    n = len(inputs)
    wanted = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]

    def gradient(*args: Any) -> Any:
        args = tuple(  # in forward mode the tape must record from the dual tensors on
            x.requires_grad_()
            if isinstance(x, Tensor) and (i in wanted or i >= n) and not x.requires_grad
            else x
            for i, x in enumerate(args)
        )
        results = _outputs(func(*args[:n]))
        found = api.grad(
            results, [args[i] for i in wanted], args[n:], create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None and g.requires_grad)

    return gradcheck(
        gradient,
        (*inputs, *grads),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _seeds(outputs: list[Tensor], gaps: bool) -> list[Any]:
    rng = np.random.default_rng(0)
    found = []
    for o in outputs:
        v = rng.standard_normal(o._a.shape)
        if o._k.dtype.is_complex:
            v = v + 1j * rng.standard_normal(o._a.shape)
        t = aten.tensor(v.astype(o._a.dtype))
        if gaps and t._a.ndim:
            t = aten.stack([t, t], -1)[..., 0]
        found.append(aten.detach(t).requires_grad_())
    return found


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
