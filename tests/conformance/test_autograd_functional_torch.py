"""`autograd.functional` against real PyTorch: values, shapes, whether results can be
differentiated, and errors."""

from __future__ import annotations

import ast
import importlib
import re
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "scalar": (lambda L, x: (x**3).sum(), 1),
    "linear": (lambda L, x: x.sum(), 1),
    "constant": (lambda L, x: L.ones((), dtype=L.float64), 1),
    "one element": (lambda L, x: (x**3).sum().view(1, 1), 1),
    "vector": (lambda L, x: x.exp().sum(1), 1),
    "same shape": (lambda L, x: x * x.sin(), 1),
    "two inputs": (lambda L, x, y: (x * x * y).sum(), 2),
    "one unused": (lambda L, x, y: (x**3).sum(), 2),
    "one linear": (lambda L, x, y: (x**3).sum() + y.sum(), 2),
    "two outputs": (lambda L, x, y: ((x * y).sum(0), x.pow(2).sum()), 2),
    "one output constant": (lambda L, x: (x.sum(), L.ones(2, dtype=L.float64)), 1),
    "tuple of one": (lambda L, x: ((x**2).sum(),), 1),
    "list": (lambda L, x: [x], 1),
    "number": (lambda L, x: 3, 1),
    "written": (lambda L, x: x.mul_(2), 1),
    "complex": (lambda L, x: L.view_as_real(L.complex(x, x * x)).prod(-1).sum(), 1),
}
OPTIONS = (
    {},
    {"create_graph": True},
    {"strict": True},
    {"strict": True, "create_graph": True},
)
MATRIX_OPTIONS = (
    *OPTIONS,
    {"vectorize": True},
    {"vectorize": True, "create_graph": True},
    {"vectorize": True, "strict": True},
    {"STRATEGY": "forward-mode"},
    {"STRATEGY": "forward-mode", "vectorize": True},
    {"STRATEGY": "forward-mode", "vectorize": True, "create_graph": True},
    {"STRATEGY": "forward-mode", "vectorize": True, "strict": True},
    {"STRATEGY": "sideways"},
)


def plain(x: Any) -> Any:
    if isinstance(x, (torch.Tensor, torchlab.Tensor)):
        # PyTorch's forward mode and vmap may write -0.0 where there is no dependence.
        digits = [f"{v + 0.0:.7g}" for v in x.detach().reshape(-1).tolist()]
        return str(x.dtype).replace("torchlab", "torch"), list(x.shape), x.requires_grad, digits
    if isinstance(x, (tuple, list)):  # PyTorch's forward mode gives lists
        return [plain(y) for y in x]
    return x


def attempt(call: Any) -> Any:
    try:
        return plain(call())
    except Exception as error:
        text = str(error).replace("torchlab", "torch").split(" Write ")[0]
        # Where one of several inputs is linear PyTorch names the number of the output.
        text = re.sub(r"independent of input \d(.*create_graph)", r"independent of input\1", text)
        # Its forward mode forgets which function was called.
        text = text.replace("outputs given to None", "outputs given to jacobian")
        return type(error).__name__, text.replace(
            "outputs of the user-provided function", "outputs"
        )


def inputs(L: Any, count: int, requires_grad: bool, single: bool = False) -> Any:
    L.manual_seed(0)
    x = L.randn(2, 3, dtype=L.float64)
    found = tuple(t.requires_grad_(requires_grad) for t in (x, L.randn(3, dtype=L.float64))[:count])
    return found[0] if single else found


def vector(L: Any, kind: str, func: Any, given: Any, name: str) -> Any:
    if kind == "none":
        return None
    if kind == "wrong size":
        return L.ones(7, dtype=L.float64)
    if kind == "too many":
        return (L.ones(2, 3, dtype=L.float64),) * 5
    if kind == "number":
        return 3
    like = given
    if name == "vjp":
        with L.no_grad():
            args = given if isinstance(given, tuple) else (given,)
            like = func(L, *(a.clone() for a in args))
    if not isinstance(like, (tuple, L.Tensor)):
        return None
    if isinstance(like, tuple):
        return tuple(L.randn(t.shape, dtype=L.float64) for t in like)
    return L.randn(like.shape, dtype=L.float64)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_products(name, function):
    func, count = FUNCTIONS[function]
    for options in OPTIONS:
        for requires_grad in (False, True):
            for kind in ("fitting", "none", "wrong size", "too many", "number"):
                found = []
                for L in (torchlab, torch):
                    F = importlib.import_module(f"{L.__name__}.autograd.functional")
                    given = inputs(L, count, requires_grad, single=count == 1)
                    v = vector(L, kind, func, given, name)
                    call = getattr(F, name)
                    found.append(
                        attempt(lambda: call(lambda *a, L=L: func(L, *a), given, v, **options))  # noqa: B023
                    )
                assert found[0] == found[1], (options, requires_grad, kind)


@pytest.mark.parametrize("name", ["jacobian", "hessian"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_matrices(name, function):
    func, count = FUNCTIONS[function]
    strategy = "strategy" if name == "jacobian" else "outer_jacobian_strategy"
    for options in MATRIX_OPTIONS:
        options = {strategy if k == "STRATEGY" else k: v for k, v in options.items()}
        for requires_grad in (False, True):
            for single in (True, False) if count == 1 else (False,):
                found = []
                for L in (torchlab, torch):
                    F = importlib.import_module(f"{L.__name__}.autograd.functional")
                    given = inputs(L, count, requires_grad, single)
                    call = getattr(F, name)
                    found.append(
                        attempt(lambda: call(lambda *a, L=L: func(L, *a), given, **options))  # noqa: B023
                    )
                if options.get("outer_jacobian_strategy"):  # PyTorch's result keeps its history
                    found = [ast.literal_eval(str(f).replace("True", "False")) for f in found]
                assert found[0] == found[1], (options, requires_grad, single)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
def test_wrong_inputs(name):
    for make in (
        lambda L: 3,
        lambda L: [L.ones(2)],
        lambda L: (L.ones(2), 3),
        lambda L: {"a": L.ones(2)},
        lambda L: L.ones(2, dtype=L.int64),
    ):
        found = []
        for L in (torchlab, torch):
            F = importlib.import_module(f"{L.__name__}.autograd.functional")
            found.append(attempt(lambda: getattr(F, name)(lambda x: (x * x).sum(), make(L))))  # noqa: B023
        assert found[0][0] == found[1][0]
        assert found[0][1][:30] == found[1][1][:30]


def test_results_lead_back_to_the_inputs():
    """A gradient of a product and of a Hessian, as used in second-order optimisation."""
    found = []
    for L in (torchlab, torch):
        F = L.autograd.functional
        (x,) = inputs(L, 1, True)
        v = L.ones(2, 3, dtype=L.float64).requires_grad_()
        _, p = F.hvp(lambda t: (t**4).sum(), x, v, create_graph=True)
        h = F.hessian(lambda t: (t**4).sum(), x, create_graph=True)
        j = F.jacobian(lambda t: t.sin() * t.sum(), x, create_graph=True, vectorize=True)
        _, q = F.jvp(lambda t: t.exp() * t, x, v, create_graph=True)
        total = p.pow(2).sum() + h.sum() + j.pow(2).sum() + q.prod()
        found.append(plain(tuple(L.autograd.grad(total, (x, v)))))
    assert found[0] == found[1]


def test_nothing_arrives_in_grad():
    x = torchlab.ones(3, requires_grad=True)
    torchlab.autograd.functional.hessian(lambda t: (t**3).sum(), x)
    torchlab.autograd.functional.jacobian(lambda t: t**3, x, create_graph=True)
    assert x.grad is None
