"""Programs over `torchlab.func` give what they give with PyTorch, errors included; custom Functions
under transforms, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.func
from tests.conformance import (
    func_argument_programs,
    func_module_programs,
    grad_programs,
    vmap_programs,
)
from torchlab._core import pytree
from torchlab._core.dispatch import modes
from torchlab._core.dispatch.levels import LEVELS

torch = pytest.importorskip("torch")
torch_func = pytest.importorskip("torch.func")

rng = np.random.default_rng(0)
X, V = rng.normal(size=(3, 4)), rng.normal(size=4)


def outcome(f: Callable[..., Any], m: Any, func: Any) -> Any:
    """What a program gives: the exception, or the leaves of its result."""
    try:
        result = f(m, func, m.tensor(X.tolist(), dtype=m.float64), m.tensor(V, dtype=m.float64))
    except Exception as e:
        return e
    if m is torchlab:
        return pytree.tree_leaves(result)
    return torch.utils._pytree.tree_leaves(result)


def check(f: Callable[..., Any]) -> None:
    expected, got = outcome(f, torch, torch_func), outcome(f, torchlab, torchlab.func)
    assert not LEVELS.running
    assert not modes.SLOW
    if isinstance(expected, Exception) or isinstance(got, Exception):
        assert type(got).__name__ == type(expected).__name__, repr(got)
        return
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        if not isinstance(e, torch.Tensor):
            assert g == e
            continue
        assert tuple(g.shape) == tuple(e.shape)
        assert str(g.dtype) == str(e.dtype)
        assert g.requires_grad == e.requires_grad
        np.testing.assert_allclose(
            g.detach().numpy(), e.detach().numpy(), rtol=1e-5, atol=1e-6, equal_nan=True
        )


@pytest.mark.parametrize("name", vmap_programs.PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_vmap(name: str) -> None:
    check(vmap_programs.PROGRAMS[name])


@pytest.mark.parametrize("name", grad_programs.PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_gradients(name: str) -> None:
    check(grad_programs.PROGRAMS[name])


@pytest.mark.parametrize("randomness", ["different", "same"])
@pytest.mark.parametrize("name", vmap_programs.DRAWS)
@pytest.mark.filterwarnings("ignore")
def test_random_numbers(name: str, randomness: str) -> None:
    draw = vmap_programs.DRAWS[name]

    def program(m: Any, func: Any, x: Any, v: Any) -> Any:
        m.manual_seed(3)
        return func.vmap(lambda x: draw(m, x), randomness=randomness)(x)

    check(program)


# ---- custom Functions ----------------------------------------------------------------------------


def cube(m: Any, kind: str) -> Any:
    """x³ and k · 3x², with a `vmap` of its own, a generated one or none."""

    class Cube(m.autograd.Function):  # type: ignore[misc, name-defined]
        generate_vmap_rule = kind == "generated"

        @staticmethod
        def forward(x: Any, k: float) -> Any:
            return x**3, 3 * x**2 * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, k = inputs
            ctx.save_for_backward(x, output[1])
            ctx.save_for_forward(x, output[1])
            ctx.k = k

        @staticmethod
        def backward(ctx: Any, g0: Any, g1: Any) -> Any:
            x, _ = ctx.saved_tensors
            return g0 * 3 * x**2 + g1 * 6 * x * ctx.k, None

        if kind == "own":

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, k: float) -> Any:
                assert info.batch_size == 3
                return Cube.apply(x, k), (in_dims[0], in_dims[0])

        @staticmethod
        def jvp(ctx: Any, t: Any, _: Any) -> Any:
            x, _ = ctx.saved_tensors
            return 3 * x**2 * t, 6 * x * t * ctx.k

    return Cube


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "vmap": lambda F, c, x, v: F.vmap(c)(x),
    "columns": lambda F, c, x, v: F.vmap(c, in_dims=1, out_dims=1)(x[:, :3]),
    "grad": lambda F, c, x, v: F.grad(lambda a: (c(a)[0] * c(a)[1]).sum())(x),
    "vmap grad": lambda F, c, x, v: F.vmap(F.grad(lambda a: (c(a)[0] * c(a)[1]).sum()))(x),
    "grad vmap": lambda F, c, x, v: F.grad(
        lambda x: F.vmap(lambda a: (c(a)[0] * c(a)[1]).sum())(x).sum()
    )(x),
    "grad vmap grad": lambda F, c, x, v: F.grad(
        lambda x: F.vmap(F.grad(lambda a: c(a)[0].sum()))(x).sum()
    )(x),
    "jvp": lambda F, c, x, v: F.jvp(c, (x,), (x,)),
    "vmap jvp": lambda F, c, x, v: F.vmap(lambda a: F.jvp(c, (a,), (a * 2,)))(x),
    "jvp vmap": lambda F, c, x, v: F.jvp(lambda x: F.vmap(c)(x), (x,), (x,)),
    "shared": lambda F, c, x, v: F.vmap(
        F.grad(lambda a, w: (c(w)[0] * a).sum(), argnums=1), in_dims=(0, None)
    )(x, v),
}


@pytest.mark.parametrize("kind", ["own", "generated", "none"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_custom_functions(name: str, kind: str) -> None:
    def program(m: Any, func: Any, x: Any, v: Any) -> Any:
        function = cube(m, kind)
        return FUNCTIONS[name](func, lambda a: function.apply(a, 2.0), x, v)

    check(program)


@pytest.mark.parametrize("name", func_argument_programs.PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_arguments(name: str) -> None:
    check(func_argument_programs.PROGRAMS[name])


@pytest.mark.parametrize("name", func_module_programs.PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_modules(name: str) -> None:
    check(func_module_programs.PROGRAMS[name])


# ---- modules -------------------------------------------------------------------------------------


def test_stacked_modules() -> None:
    def program(m: Any, func: Any, x: Any, v: Any) -> Any:
        m.manual_seed(0)
        models = [m.nn.Sequential(m.nn.Linear(4, 5), m.nn.ReLU(), m.nn.Linear(5, 2)).double()
                  for _ in range(3)]  # fmt: skip
        params, buffers = func.stack_module_state(models)

        def loss(p: Any, b: Any, x: Any) -> Any:
            return func.functional_call(models[0], (p, b), (x,)).sin().sum()

        return func.vmap(func.grad(loss), in_dims=(0, 0, None))(params, buffers, x), params

    check(program)


def test_batch_norms_without_statistics() -> None:
    def program(m: Any, func: Any, x: Any, v: Any) -> Any:
        m.manual_seed(0)
        model = m.nn.Sequential(m.nn.Linear(4, 3), m.nn.BatchNorm1d(3)).double()
        func.replace_all_batch_norm_modules_(model)
        params = dict(model.named_parameters())

        def loss(p: Any, x: Any) -> Any:
            return func.functional_call(model, p, (x,)).sin().sum()

        return func.vmap(func.grad(loss), in_dims=(None, 0))(params, m.stack([x, x * 2]))

    check(program)


@pytest.mark.parametrize(
    "pattern", ["a b -> b a", "a b -> (a b)", "a (c d) -> a c d", "... a -> a ...", "a b -> a 1 b",
                "a b -> a", "a a -> a", "a b", "a (b -> a b"]
)  # fmt: skip
def test_rearrange(pattern: str) -> None:
    sizes = {"c": 2} if "c" in pattern else {}
    check(lambda m, func, x, v: func.rearrange(x, pattern, **sizes))
