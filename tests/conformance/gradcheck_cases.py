"""Right and wrong functions, and settings, for gradcheck: the same in torchlab and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def _operators(lib: Any) -> dict[str, Any]:
    function = lib.autograd.Function

    def made(forward: Any, backward: Any, jvp: Any = None, materialize: bool = True) -> Any:
        class Made(function):  # type: ignore[misc, valid-type]
            @staticmethod
            def forward(ctx: Any, *x: Any) -> Any:
                ctx.save_for_backward(*x)
                ctx.save_for_forward(*x)
                ctx.set_materialize_grads(materialize)
                return forward(*x)

            @staticmethod
            def backward(ctx: Any, *g: Any) -> Any:
                return backward(ctx, *g)

        if jvp is not None:
            Made.jvp = staticmethod(jvp)  # type: ignore[attr-defined]
        return Made.apply

    def slope(c: Any, n: float) -> Any:
        return c.saved_tensors[0] * n

    runs: list[int] = []

    def shaky(c: Any, g: Any) -> Any:
        runs.append(1)
        return g * (1 + 1e-7 * (len(runs) % 2))

    def product(x: Any, y: Any) -> Any:
        return x * y, x + y

    complex_type = lib.complex128
    return {
        "square": made(lambda x: x * x, lambda c, g: g * slope(c, 2)),
        "square pushed": made(
            lambda x: x * x, lambda c, g: g * slope(c, 2), lambda c, t: t * slope(c, 2)
        ),
        "wrong": made(lambda x: x * x, lambda c, g: g * slope(c, 3)),
        "nothing": made(lambda x: x * x, lambda c, g: None),
        "wrong pushed": made(
            lambda x: x * x, lambda c, g: g * slope(c, 2), lambda c, t: t * slope(c, 3)
        ),
        "two": made(
            product, lambda c, g, h: (g * c.saved_tensors[1] + h, g * c.saved_tensors[0] + h)
        ),
        "two wrong": made(product, lambda c, g, h: (g * c.saved_tensors[1] + h, g * slope(c, 2))),
        "none is one": made(
            lambda x: x * 2,
            lambda c, g: lib.ones(3, dtype=lib.float64) if g is None else g * 2,
            materialize=False,
        ),
        "shaky": made(lambda x: x * 1.0, shaky),
        "not scaled": made(lambda x: x * 1.0, lambda c, g: g + 1e-7),
        "z squared": made(lambda z: z * z, lambda c, g: g * slope(c, 2).conj()),
        "z squared wrong": made(lambda z: z * z, lambda c, g: g * slope(c, 2)),
        "real part wrong": made(lambda z: z.real * 1.0, lambda c, g: g.to(complex_type) * 1j),
        "to complex": made(lambda x: x * (1 + 2j), lambda c, g: (g * (1 - 2j)).real),
        "to complex wrong": made(lambda x: x * (1 + 2j), lambda c, g: (g * (1 + 2j)).real),
        "wrong shape": made(lambda x: x.sum(), lambda c, g: lib.ones(2, dtype=lib.float64)),
        "raises": made(lambda x: x * 2, lambda c, g: 1 // 0),
        "second wrong": made(lambda x: x * x * x, lambda c, g: g * slope(c, 1).detach() ** 2 * 3),
    }


def cases(lib: Any) -> dict[str, Case]:
    """Name → (function, inputs, settings) for gradcheck."""
    f = _operators(lib)

    def x(n: int = 3, dtype: Any = lib.float64) -> Any:
        return lib.tensor([0.4, 0.6, 0.7][:n]).to(dtype).requires_grad_()

    def z() -> Any:
        return lib.tensor([0.4 + 0.2j, 0.6 - 0.1j], dtype=lib.complex128, requires_grad=True)

    def sparse(layout: str = "to_sparse") -> Any:
        return getattr(lib.eye(3, dtype=lib.float64), layout)().requires_grad_()

    dense = lib.tensor([[0.3], [0.5], [0.7]], dtype=lib.float64, requires_grad=True)
    fast, push = {"fast_mode": True}, {"check_forward_ad": True}
    only_push = {**push, "check_backward_ad": False}
    found: dict[str, Case] = {}
    for name, arguments in {
        "square": [x()], "wrong": [x()], "nothing": [x()], "two": [x(), x()],
        "two wrong": [x(), x()], "none is one": [x()], "shaky": [x()], "not scaled": [x()],
        "z squared": [z()], "z squared wrong": [z()], "real part wrong": [z()],
        "to complex": [x()], "to complex wrong": [x()], "wrong shape": [x()], "raises": [x()],
        "square pushed": [x()], "wrong pushed": [x()],
    }.items():  # fmt: skip
        given = tuple(arguments)
        found[name] = (f[name], given, {})
        if name not in ("nothing", "shaky", "not scaled", "wrong shape"):
            found[f"{name}, fast"] = (f[name], given, fast)
    for name in ("square", "square pushed", "wrong pushed"):
        found[f"{name}, both ways"] = (f[name], (x(),), push)
        found[f"{name}, forward"] = (f[name], (x(),), only_push)
        found[f"{name}, forward, fast"] = (f[name], (x(),), {**only_push, **fast})
    found |= {
        "sin": (lib.sin, (x(),), {}),
        "a tensor": (lib.sin, x(), {}),  # type: ignore[dict-item]
        "no gradient": (lib.sin, (x().detach(),), {}),
        "detached": (lambda a: a.detach() * 2, (x(),), {}),
        "constant": (lambda a: lib.ones(2), (x(),), {}),
        "bools": (lambda a: a > 0, (x(),), {}),
        "an index, too": (lambda a: (a.sin(), a.argmax()), (x(),), {}),
        "no tensor": (lambda a: 3, (x(),), {}),
        "single precision": (lib.sin, (x(3, lib.float32),), {}),
        "expanded": (lib.sin, (x(1).expand(3),), {}),
        "empty": (lib.sin, (x(0),), {}),
        "wrong, told": (f["wrong"], (x(),), {"raise_exception": False}),
        "tolerant": (f["wrong"], (x(),), {"atol": 9.0, "rtol": 9.0}),
        "shaky, tolerated": (f["shaky"], (x(),), {"nondet_tol": 1e-5}),
        "none is one, unasked": (f["none is one"], (x(),), {"check_undefined_grad": False}),
        "batched": (lib.exp, (x(),), {"check_batched_grad": True}),
        "batched forward": (lib.exp, (x(),), {**push, "check_batched_forward_grad": True}),
        "batched forward alone": (lib.exp, (x(),), {"check_batched_forward_grad": True}),
        "batched only forward": (lib.exp, (x(),), {**only_push, "check_batched_grad": True}),
        "neither way": (lib.exp, (x(),), {"check_backward_ad": False}),
        "complex both ways": (lambda a: a.sin() * 2j, (z(),), push),
        "absolute both ways": (lambda a: (a * a).abs(), (z(),), push),
        "complex fast": (lambda a: a.sin() * 2j, (z(),), {**push, **fast}),
    }
    for masked in (True, False, None):
        for everywhere in (True, False):
            for layout in ("to_sparse", "to_sparse_csr"):
                found[f"{layout} {masked} {everywhere}"] = (
                    lambda a, e=everywhere: a.to_dense(masked_grad=not e),
                    (sparse(layout),),
                    {"masked": masked},
                )
        found[f"product {masked}"] = (lib.sparse.mm, (sparse(), dense), {"masked": masked})
    return found


def second_cases(lib: Any) -> dict[str, Case]:
    """The same for gradgradcheck."""
    f = _operators(lib)

    def x() -> Any:
        return lib.tensor([0.4, 0.6, 0.7], dtype=lib.float64, requires_grad=True)

    z = lib.tensor([0.4 + 0.2j, 0.6 - 0.1j], dtype=lib.complex128, requires_grad=True)
    return {
        "sin": (lib.sin, (x(),), {}),
        "linear": (lambda a: a * 2, (x(),), {}),
        "square": (f["square"], (x(),), {}),
        "wrong": (f["wrong"], (x(),), {}),
        "second wrong": (f["second wrong"], (x(),), {}),
        "complex": (lambda a: a * a, (z,), {}),
        "forward over reverse": (lib.sin, (x(),), {"check_fwd_over_rev": True}),
        "only that": (
            lib.sin, (x(),), {"check_fwd_over_rev": True, "check_rev_over_rev": False},
        ),
        "neither": (lib.sin, (x(),), {"check_rev_over_rev": False}),
        "fast": (lib.sin, (x(),), {"fast_mode": True}),
        "gaps": (lib.sin, (x(),), {"gen_non_contig_grad_outputs": True}),
        "no gradient": (lib.sin, (x().detach(),), {}),
        "batched": (lib.sin, (x(),), {"check_batched_grad": True}),
    }  # fmt: skip


__all__ = ["cases", "second_cases"]
