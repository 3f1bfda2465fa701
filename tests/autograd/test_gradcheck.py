"""gradcheck tells right derivatives from wrong ones, in every mode that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torchlab
from torchlab.autograd import Function, gradcheck, gradgradcheck
from torchlab.autograd.gradcheck import GradcheckError

D, C = torchlab.float64, torchlab.complex128


def operator(forward: Any, backward: Any, jvp: Any = None) -> Callable[..., Any]:
    class Made(Function):
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            ctx.save_for_backward(*x)
            ctx.save_for_forward(*x)
            return forward(*x)

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            return backward(ctx, *g)

    if jvp is not None:
        Made.jvp = staticmethod(jvp)  # type: ignore[method-assign]
    return Made.apply


def saved(ctx: Any, factor: float) -> Any:
    return ctx.saved_tensors[0] * factor


def x() -> Any:
    return torchlab.tensor([0.4, 0.6, 0.7], dtype=D, requires_grad=True)


def z() -> Any:
    return torchlab.tensor([0.4 + 0.2j, 0.6 - 0.1j], dtype=C, requires_grad=True)


square = operator(lambda a: a * a, lambda c, g: g * saved(c, 2), lambda c, t: t * saved(c, 2))
wrong_back = operator(lambda a: a * a, lambda c, g: g * saved(c, 3))
wrong_push = operator(lambda a: a * a, lambda c, g: g * saved(c, 2), lambda c, t: t * saved(c, 3))
square_c = operator(lambda a: a * a, lambda c, g: g * saved(c, 2).conj())
square_c_wrong = operator(lambda a: a * a, lambda c, g: g * saved(c, 2))
second_wrong = operator(
    lambda a, b: (a * b, a + b),
    lambda c, g, h: (g * c.saved_tensors[1] + h, g * saved(c, 2) + h),
)


@pytest.mark.parametrize("fast", [False, True])
def test_right_ones_pass(fast: bool) -> None:
    sides: dict[str, Any] = {"fast_mode": fast, "check_forward_ad": True}
    assert gradcheck(square, x(), **sides)
    assert gradcheck(square_c, (z(),), fast_mode=fast)
    assert gradcheck(lambda a: (a * a).abs(), (z(),), **sides)
    assert gradcheck(lambda a: a * (1 + 2j), (x(),), **sides)
    assert gradcheck(torchlab.exp, (x(),), check_batched_grad=True, **sides)
    assert gradcheck(torchlab.exp, (x(),), check_batched_forward_grad=True, **sides)
    assert gradcheck(lambda a: (a.sin(), a.argmax()), (x(),), **sides)
    assert gradgradcheck(torchlab.sin, (x(),), fast_mode=fast, check_fwd_over_rev=True)
    assert gradgradcheck(lambda a: a * 2, (x(),), gen_non_contig_grad_outputs=True)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("func", "inputs", "settings", "text"),
    [
        (wrong_back, [x], {}, "^Jacobian mismatch for output 0 with respect to input 0"),
        (second_wrong, [x, x], {}, "^Jacobian mismatch for output 0 with respect to input 1"),
        (square_c_wrong, [z], {}, "^While considering the imaginary part of complex outputs only"),
        (wrong_push, [x], {"check_forward_ad": True}, "^Jacobian computed with forward mode"),
        (wrong_push, [x], {"check_forward_ad": True, "check_backward_ad": False}, "forward mode"),
        (lambda a: a.detach() * 2, [x], {}, "expected to be zero"),
    ],
)
def test_wrong_ones_do_not(func: Any, inputs: Any, settings: Any, text: str, fast: bool) -> None:
    given = tuple(make() for make in inputs)
    with pytest.raises(GradcheckError, match=text):
        gradcheck(func, given, fast_mode=fast, **settings)
    assert not gradcheck(func, given, fast_mode=fast, raise_exception=False, **settings)


def test_what_else_backward_must_do() -> None:
    class OfNone(Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.set_materialize_grads(False)
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torchlab.ones(3, dtype=D) if g is None else g * 2

    with pytest.raises(GradcheckError, match="undefined or zero"):
        gradcheck(OfNone.apply, x())
    assert gradcheck(OfNone.apply, x(), check_undefined_grad=False)

    narrow = operator(lambda a: a * 2.0, lambda c, g: (g * 2).float())
    assert gradcheck(narrow, x(), check_grad_dtypes=True)  # backward converts what it is given

    runs: list[int] = []

    def shaky(ctx: Any, g: Any) -> Any:
        runs.append(1)
        return g * (1 + 1e-7 * (len(runs) % 2))

    moving = operator(lambda a: a * 1.0, shaky)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(moving, x())
    assert gradcheck(moving, x(), nondet_tol=1e-5)

    constant = operator(lambda a: a * 1.0, lambda c, g: g + 1e-7)
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(constant, x())

    reads = operator(lambda a: a * 2, lambda c, g: g * 2 if g.sum().item() != 12345 else g)
    with pytest.raises(GradcheckError, match="While computing batched gradients"):
        gradcheck(reads, x(), check_batched_grad=True)


def test_settings_that_contradict_each_other() -> None:
    for settings in (
        {"check_backward_ad": False},
        {"check_batched_forward_grad": True},
        {"check_batched_grad": True, "check_backward_ad": False, "check_forward_ad": True},
    ):
        with pytest.raises(AssertionError):
            gradcheck(torchlab.sin, x(), **settings)
    with pytest.raises(AssertionError, match="check_rev_over_rev"):
        gradgradcheck(torchlab.sin, x(), check_fwd_over_rev=True, check_rev_over_rev=False)
    with pytest.raises(ValueError, match="at least one input"):
        gradcheck(torchlab.sin, x().detach())
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(torchlab.sin, torchlab.ones(1, dtype=D, requires_grad=True).expand(3))
    with pytest.raises(NotImplementedError, match="implement the jvp"):
        gradcheck(wrong_back, x(), check_forward_ad=True, check_backward_ad=False)
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda a: a * 1.0, x().detach().float().requires_grad_(), eps=0.1, atol=0.1)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_inputs_with_and_without_a_mask(layout: str, fast: bool) -> None:
    def s() -> Any:
        eye = torchlab.eye(3, dtype=D)
        return (eye.to_sparse() if layout == "coo" else eye.to_sparse_csr()).requires_grad_()

    for masked in (True, False):
        assert gradcheck(
            lambda a, m=masked: a.to_dense(masked_grad=m), (s(),), masked=masked, fast_mode=fast
        )
        if not fast:  # a direction within the mask cannot tell
            with pytest.raises(GradcheckError, match="Jacobian mismatch"):
                gradcheck(lambda a, m=masked: a.to_dense(masked_grad=not m), s(), masked=masked)
    b = torchlab.tensor([[0.3, 0.4], [0.5, 0.6], [0.7, 0.8]], dtype=D, requires_grad=True)
    if layout == "coo":
        assert gradcheck(torchlab.sparse.mm, (s(), b), masked=True, fast_mode=fast)
