"""gradcheck and gradgradcheck: the tape against finite differences.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.autograd.gradcheck.gradcheck.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import api


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
    fast_mode: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    masked: Any = None,
) -> bool:
    """Whether the gradients of `func` at double-precision `inputs` agree with finite differences.
    Raises GradcheckError with both matrices if they do not (or returns False)."""
    inputs = (
        inputs
        if isinstance(inputs, tuple)
        else tuple(inputs)
        if isinstance(inputs, list)
        else (inputs,)
    )
    wanted = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have"
            " requires_grad=True."
        )
    outputs = _outputs(func(*inputs))
    for k, o in enumerate(outputs):
        for i in wanted:
            numerical = _numerical(func, inputs, i, k, eps)
            analytical = (
                _analytical(o, inputs[i])
                if o.requires_grad
                else np.zeros((o._a.size, inputs[i]._a.size))
            )
            if not _agree(numerical, analytical, inputs[i], o, atol, rtol):
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"Jacobian mismatch for output {k} with respect to input"
                    f" {i},\nnumerical:{numerical}\nanalytical:{analytical.T}\n"
                )
    return True


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
    masked: Any = None,
) -> bool:
    """gradcheck of the gradient itself."""
    inputs = (
        inputs
        if isinstance(inputs, tuple)
        else tuple(inputs)
        if isinstance(inputs, list)
        else (inputs,)
    )
    outputs = _outputs(func(*inputs))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grads = tuple(
            aten.tensor(
                (
                    rng.standard_normal(o._a.shape)
                    + (1j * rng.standard_normal(o._a.shape) if o._k.dtype.is_complex else 0)
                ).astype(o._a.dtype)
            ).requires_grad_()
            for o in outputs
        )
    else:
        grads = grad_outputs if isinstance(grad_outputs, tuple) else (grad_outputs,)
    n = len(inputs)
    wanted = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]

    def gradient(*args: Any) -> Any:
        results = _outputs(func(*args[:n]))
        found = api.grad(
            results, [args[i] for i in wanted], args[n:], create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None and g.requires_grad)

    return gradcheck(
        gradient, (*inputs, *grads), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )
