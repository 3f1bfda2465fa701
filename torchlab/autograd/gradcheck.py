"""gradcheck and gradgradcheck: the tape, and forward mode, against finite differences.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.autograd.gradcheck.gradcheck.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import api
from torchlab.autograd import gradcheck_jacobians as jacobians
from torchlab.autograd.function import Function
from torchlab.autograd.gradcheck_jacobians import is_strided, parts_of


class GradcheckError(RuntimeError):
    """The analytical and the numerical gradient differ."""


class _Check(NamedTuple):
    """What is checked, with what."""

    func: Callable[..., list[Tensor]]  # gives the differentiable outputs
    inputs: tuple[Any, ...]
    wanted: list[int]
    outputs: list[Tensor]
    eps: float
    atol: float
    rtol: float
    masked: bool
    nondet_tol: float
    grad_dtypes: bool

    @property
    def xs(self) -> list[Tensor]:
        return [self.inputs[i] for i in self.wanted]


def _all_outputs(r: Any) -> list[Any]:
    return list(r) if isinstance(r, (tuple, list)) else [r]


def _outputs(r: Any) -> list[Tensor]:
    """The outputs that have a history."""
    return [t for t in _all_outputs(r) if t.requires_grad]


def _check_inputs(inputs: tuple[Any, ...]) -> list[int]:
    wanted = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have"
            " requires_grad=True."
        )
    for i in wanted:
        t = inputs[i]
        if t.dtype.itemsize < (16 if t.dtype.is_complex else 8):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or"
                " complex. This check will likely fail if all the inputs are not of double"
                " precision floating point or complex.",
                stacklevel=4,
            )
        if not is_strided(t):
            continue
        if any(n > 1 and s == 0 for n, s in zip(t._a.shape, t._a.strides, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs"
                " that are non-overlapping to be able to compute the numerical gradients correctly."
                " You should call .contiguous on the input before passing it to gradcheck."
            )
    return wanted


# ---- comparing ----------------------------------------------------------------------------------


def _close(a: Any, b: Any, c: _Check) -> bool:
    return bool(np.allclose(a, b, c.rtol, c.atol, equal_nan=True))


def _mismatch(
    part: str, k: int, i: int, numerical: Any, analytical: Any, forward: bool, fast: bool
) -> GradcheckError:
    how = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
    if part:
        how = f"While considering the {part} only, {how}"
    text = (
        f"{how} for output {k} with respect to input {i},\nnumerical:{numerical}\n"
        f"analytical:{analytical}\n"
    )
    if fast:
        text += (
            "\nThe above quantities relating the numerical and analytical jacobians are computed in"
            " fast mode: each is one number, the derivative along one random direction weighted at"
            " random. fast_mode=False compares the whole matrices.\n"
        )
    return GradcheckError(text)


def _passes(tensors: Sequence[Tensor], what: str) -> list[tuple[str, int]]:
    """(name, number) of the parts that are looked at one after the other."""
    if any(t.dtype.is_complex for t in tensors):
        return [(f"imaginary part of complex {what}", 1), (f"real part of complex {what}", 0)]
    return [("", 0)]


def _rows(j: np.ndarray) -> np.ndarray:
    """A Jacobian for a message: a row for each number of the input."""
    return j.reshape(j.shape[0] * j.shape[1], -1)


def _slow(c: _Check, back: bool, forward: bool) -> None:
    numbers = {
        i: jacobians.numerical(c.func, c.inputs, i, c.outputs, c.eps, c.masked) for i in c.wanted
    }
    if back:
        tape = {
            (k, i): jacobians.analytical(o, c.inputs[i])
            for k, o in enumerate(c.outputs)
            for i in c.wanted
        }
        for name, q in _passes(c.outputs, "outputs"):
            for k, o in enumerate(c.outputs):
                for i in c.wanted if q < parts_of(o) else ():
                    expected, found = numbers[i][k][..., q], tape[k, i][..., q]
                    if not _close(expected, found, c):
                        raise _mismatch(name, k, i, _rows(expected), _rows(found), False, False)
        for o in c.outputs:
            _check_repeats(c, o)
    if forward:
        pushed = {i: jacobians.forward(c.func, c.inputs, i, c.outputs, c.masked) for i in c.wanted}
        for name, p in _passes(c.xs, "inputs"):
            for k in range(len(c.outputs)):
                for i in c.wanted:
                    if p < parts_of(c.inputs[i]):
                        expected, found = numbers[i][k][:, p], pushed[i][k][:, p]
                        if not _close(expected, found, c):
                            raise _mismatch(name, k, i, expected, found, True, False)


def _fast(c: _Check, back: bool, forward: bool) -> None:
    random = jacobians.Directions()
    sources = {i: jacobians.Input(c.inputs[i], c.masked) for i in c.wanted}
    us = {i: random.of(s.size, s.parts) for i, s in sources.items()}
    for i, s in sources.items():
        if s.stored is not None and c.masked:
            us[i][~s.stored] = 0
    vs = [random.of(o.numel(), 1)[:, 0] for o in c.outputs]

    def numbers(i: int, u: np.ndarray) -> list[np.ndarray]:
        found = jacobians.fast_numerical(c.func, c.inputs, i, sources[i], u, c.eps)
        return [v @ d for v, d in zip(vs, found, strict=True)]

    if back:
        along = {i: numbers(i, us[i]) for i in c.wanted}
        for name, q in _passes(c.outputs, "outputs"):
            for k, o in enumerate(c.outputs):
                if q >= parts_of(o):
                    continue
                grads = jacobians.backward(o, c.xs, vs[k] * 1j if q else vs[k])
                for i, g in zip(c.wanted, grads, strict=True):
                    found = 0.0
                    if g is not None:
                        values = jacobians.dense_array(g)
                        u = us[i]
                        found = float(values.real @ u[:, 0])
                        if u.shape[1] == 2:
                            found += float(values.imag @ u[:, 1])
                    if not _close(along[i][k][q], found, c):
                        raise _mismatch(name, k, i, along[i][k][q], found, False, True)
        for o in c.outputs:
            _check_repeats(c, o)
    if forward:
        for name, p in _passes(c.xs, "inputs"):
            for i in c.wanted:
                if p >= sources[i].parts:
                    continue
                u = np.zeros_like(us[i])
                u[:, p] = us[i][:, p]
                tangent = aten.tensor(
                    jacobians.as_numbers(u, sources[i].dtype).reshape(tuple(c.inputs[i].shape))
                )
                if not is_strided(c.inputs[i]):
                    tangent = tangent.to_sparse(layout=c.inputs[i].layout)
                expected = numbers(i, u)
                for k, (_, t) in enumerate(jacobians.push(c.func, c.inputs, i, tangent)):
                    pushed: Any = np.zeros_like(expected[k])
                    if t is not None:
                        values = jacobians.dense_array(t)
                        pair = np.stack([values.real, values.imag], -1)[:, : pushed.size]
                        pushed = vs[k] @ pair
                    if not _close(expected[k], pushed, c):
                        raise _mismatch(name, k, i, expected[k], pushed, True, True)


# ---- what else must hold ------------------------------------------------------------------------


def _random_like(o: Tensor) -> np.ndarray:
    rng = np.random.default_rng(0)
    v = rng.standard_normal(o.numel())
    return v + 1j * rng.standard_normal(o.numel()) if o.dtype.is_complex else v


def _check_repeats(c: _Check, o: Tensor) -> None:
    """Backward twice is the same, and gradients are what they should be."""
    if not o.requires_grad:
        return
    v = _random_like(o)
    first, second = (jacobians.backward(o, c.xs, v) for _ in range(2))
    for x, a, b in zip(c.xs, first, second, strict=True):
        if a is None:
            continue
        if c.grad_dtypes and a.dtype is not x.dtype:
            raise GradcheckError(
                "Gradient has dtype mismatch: the gradient of an input of dtype"
                f" {x.dtype} is of {a.dtype}"
            )
        if tuple(a.shape) != tuple(x.shape):
            raise GradcheckError("Gradient has incorrect size")
        a, b = jacobians.dense_array(a), jacobians.dense_array(b)
        if a.size and float(np.max(np.abs(a - b))) > c.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output"
                " multiple times gives different values, although analytical gradient matches"
                f" numerical gradient. The tolerance for nondeterminism was {c.nondet_tol}."
            )


def _check_no_outputs(c: _Check, raw: Callable[..., Any]) -> None:
    """A function without differentiable outputs must not change with its inputs."""

    def every(*args: Any) -> list[Tensor]:
        return [aten.detach(o) for o in _all_outputs(raw(*args))]

    outputs = every(*c.inputs)
    for o in outputs:
        if str(o.dtype) == "torch.bool":
            aten.sub(o, o)  # raises: there are no differences of bools
    for i in c.wanted:
        for j in jacobians.numerical(every, c.inputs, i, outputs, c.eps, c.masked):
            if not np.allclose(j, 0, c.rtol, c.atol):
                raise GradcheckError("Numerical gradient for function expected to be zero")


_REMEDY = (
    "\n\ngradcheck was called with {name}=True, which runs {what} under vmap for several at once."
    " Either mend it, or leave {name} out if it need not work under vmap."
)


def _check_batched(c: _Check, o: Tensor) -> None:
    """All columns at once must give what they give one by one."""
    remedy = _REMEDY.format(name="check_batched_grad", what="backward")
    rng = np.random.default_rng(0)
    rows = aten.tensor(rng.standard_normal((10, *o.shape)).astype(np.dtype(o.dtype.np)))
    options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
    one_by_one = [api.grad(o, c.xs, rows[j], **options) for j in range(len(rows))]
    try:
        together = api.grad(o, c.xs, rows, is_grads_batched=True, **options)
    except RuntimeError as e:
        raise GradcheckError(f"While computing batched gradients, got: {e}{remedy}") from e
    for i, a in zip(c.wanted, together, strict=True):
        for j, row in enumerate(one_by_one):
            b = row[c.wanted.index(i)]
            if a is not None and b is not None and not np.allclose(a[j]._a, b._a):
                raise GradcheckError(
                    f"For input {i}, batched gradients differ from those that were computed one by"
                    f" one:\nbatched:\n{a[j]}\none by one:\n{b}{remedy}"
                )


def _check_batched_forward(c: _Check) -> None:
    """As `_check_batched`, for tangents."""
    remedy = _REMEDY.format(name="check_batched_forward_grad", what="forward mode")
    for i in c.wanted:
        try:
            together, one_by_one = jacobians.forward_batched(c.func, c.inputs, i, 2)
        except RuntimeError as e:
            raise GradcheckError(f"While computing batched gradients, got: {e}{remedy}") from e
        for k, a in enumerate(together):
            for j, row in enumerate(one_by_one):
                b = row[k]
                if a is not None and b is not None and not np.allclose(a[j]._a, b._a):
                    raise GradcheckError(
                        f"For output {k} and input {i}, batched tangents differ from those that"
                        f" were computed one by one:\nbatched:\n{a[j]}\none by one:\n{b}{remedy}"
                    )


def _check_zero(c: _Check) -> None:
    """A gradient of zeros gives zeros."""
    outputs = c.outputs
    grads = api.grad(
        outputs, c.xs, [aten.zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True
    )
    for x, g in zip(c.xs, grads, strict=True):
        if g is None:
            continue
        if not is_strided(x) and not is_strided(g) and g.layout != x.layout:
            raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
        if not np.all(jacobians.dense_array(g) == 0):
            raise GradcheckError("backward not multiplied by grad_output")


class _Undefined(Function):
    """Hands its input on; backward gives no gradient at all."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Any:
        return tuple(x.detach() for x in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def _check_undefined(c: _Check) -> None:
    """Missing gradients of outputs must count as zeros."""

    def check(missing: set[int]) -> None:
        outputs = c.func(*c.inputs)
        given = [_Undefined.apply(o)[0] if j in missing else o for j, o in enumerate(outputs)]
        seeds = [aten.zeros_like(o) for o in given]
        for g in api.grad(given, c.xs, seeds, allow_unused=True):
            if g is not None and not np.all(jacobians.dense_array(g) == 0):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are"
                    " undefined or zero. Please check if you need a TORCH_CHECK in backward: a"
                    " gradient that is None counts as zeros."
                )

    n = len(c.outputs)
    check(set(range(n)))
    if n > 1:
        for j in range(n):
            check({j})
            check(set(range(n)) - {j})


# ---- the checks ---------------------------------------------------------------------------------


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
    check_batched_grad, check_batched_forward_grad: many gradients (tangents) at once must give the
    same. check_forward_ad, check_backward_ad: which modes are compared. fast_mode: one random
    direction instead of the whole Jacobian. masked: of sparse inputs, whether elements that they do
    not store are constants (True) or zeros that vary as all others (False, None).
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

    def differentiable(*args: Any) -> list[Tensor]:
        return [o for o, kept in zip(_all_outputs(func(*args)), keep, strict=True) if kept]

    try:
        wanted = _check_inputs(inputs)
        first = _all_outputs(func(*inputs))
        keep = [o.requires_grad for o in first]
        c = _Check(
            differentiable, inputs, wanted, [o for o in first if o.requires_grad], eps, atol, rtol,
            bool(masked), nondet_tol, check_grad_dtypes,
        )  # fmt: skip
        if not c.outputs:
            _check_no_outputs(c, func)
            return True
        (_fast if fast_mode else _slow)(c, check_backward_ad, check_forward_ad)
        if check_batched_forward_grad:
            _check_batched_forward(c)
        if not check_backward_ad:
            return True
        if check_batched_grad:
            for o in c.outputs:
                _check_batched(c, o)
        _check_zero(c)
        if check_undefined_grad:
            _check_undefined(c)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


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
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True"
        )
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_rev_over_rev to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        grads = tuple(_seeds(_outputs(func(*inputs)), gen_non_contig_grad_outputs))
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
        if not wanted:
            return ()
        results = _outputs(func(*args[:n]))
        found = api.grad(
            results, [args[i] for i in wanted], args[n:], create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

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
        v = rng.standard_normal(tuple(o.shape))
        if o.dtype.is_complex:
            v = v + 1j * rng.standard_normal(tuple(o.shape))
        t = aten.tensor(v.astype(np.dtype(o.dtype.np)))
        if gaps and t._a.ndim:
            t = aten.stack([t, t], -1)[..., 0]
        if not is_strided(o):
            t = t.to_sparse(layout=o.layout)
        found.append(aten.detach(t).requires_grad_())
    return found


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
