"""Forward mode beside PyTorch: values and tangents of the same small programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.autograd.forward_ad as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.autograd.forward_ad")

X, T_ = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 3.0])


def written(F: Any, T: Any, x: Any, t: Any) -> Any:
    out = T.zeros(2, 3, dtype=T.float64)
    out[0] = F.make_dual(x, t)
    out[1, 1:] = F.make_dual(x, t)[1:] * 3
    return out * 2


def forward_over_reverse(F: Any, T: Any, x: Any, t: Any) -> Any:
    x = x.clone().requires_grad_()
    d = F.make_dual(x, t)
    (slope,) = T.autograd.grad((d.sin() * d).sum(), x, create_graph=True)
    return slope


def reverse_over_forward(F: Any, T: Any, x: Any, t: Any) -> Any:
    x = x.clone().requires_grad_()
    d = F.make_dual(x, t)
    slope = T.autograd.grad(F.unpack_dual((d.sin() * d).sum()).tangent, x)[0]
    return F.unpack_dual(slope).primal  # (PyTorch's has a tangent again, a third derivative)


PROGRAMS: dict[str, Any] = {
    "detach": lambda F, T, x, t: F.make_dual(x, t).detach(),
    "compare": lambda F, T, x, t: F.make_dual(x, t) > 0,
    "add_": lambda F, T, x, t: F.make_dual(x, t).add_(1),
    "mul_ into a plain tensor": lambda F, T, x, t: x.add(1).mul_(F.make_dual(x, t)),
    "ones_like": lambda F, T, x, t: T.ones_like(F.make_dual(x, t)),
    "clone": lambda F, T, x, t: F.make_dual(x, t).clone(),
    "copy_": lambda F, T, x, t: x.clone().copy_(F.make_dual(x, t)),
    "zero_": lambda F, T, x, t: F.make_dual(x, t).zero_(),
    "fill_": lambda F, T, x, t: F.make_dual(x, t).fill_(2),
    "index_put_": lambda F, T, x, t: T.zeros(2, 3, dtype=T.float64).index_put_(
        (T.tensor([0]),), F.make_dual(x, t)
    ),
    "written": written,
    "chain": lambda F, T, x, t: F.make_dual(x, t).sin().exp().sum(),
    "slice": lambda F, T, x, t: F.make_dual(x, t)[1:] * 2,
    "sort": lambda F, T, x, t: T.sort(F.make_dual(x, t))[0],
    "softmax": lambda F, T, x, t: T.softmax(F.make_dual(x, t), 0),
    "outer": lambda F, T, x, t: T.outer(F.make_dual(x, t), x),
    "layer_norm": lambda F, T, x, t: T.nn.functional.layer_norm(F.make_dual(x, t), (3,)),
    "stack": lambda F, T, x, t: T.stack([F.make_dual(x, t), x]),
    "float": lambda F, T, x, t: F.make_dual(x, t).float(),
    "matmul of a vector": lambda F, T, x, t: F.make_dual(x, t) @ T.outer(x, x),
    "norm at zero": lambda F, T, x, t: T.linalg.vector_norm(F.make_dual(x * 0, t)),
    "logcumsumexp": lambda F, T, x, t: T.logcumsumexp(F.make_dual(x, t), 0),
    "svdvals": lambda F, T, x, t: T.linalg.svdvals(F.make_dual(T.diag(x), T.outer(t, x))),
    "complex": lambda F, T, x, t: T.tanh(F.make_dual(T.complex(x, t), T.complex(t, x))),
    "abs of complex": lambda F, T, x, t: F.make_dual(T.complex(x, t), T.complex(t, x)).abs(),
    "view_as_real": lambda F, T, x, t: T.view_as_real(
        F.make_dual(T.complex(x, t), T.complex(t, x))
    ),
    "squeeze_": lambda F, T, x, t: F.make_dual(x, t).mul(2).unsqueeze_(0).squeeze_(0),
    "forward over reverse": forward_over_reverse,
    "reverse over forward": reverse_over_forward,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    made = []
    for F, T in ((ours, torchlab), (theirs, torch)):
        with F.dual_level():
            r = PROGRAMS[name](F, T, T.from_numpy(X.copy()), T.from_numpy(T_.copy()))
            value, tangent = F.unpack_dual(r)
            value, tangent = (None if y is None else y.detach().numpy() for y in (value, tangent))
            made.append((value, tangent))
    for mine, other in zip(*made, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine.dtype == other.dtype
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda F, T, x, t: F.make_dual(x, t[:2]),
        lambda F, T, x, t: F.make_dual(x.int(), t),
        lambda F, T, x, t: F.make_dual(x, t.int()),
        lambda F, T, x, t: F.enter_dual_level(),
        lambda F, T, x, t: F.make_dual(F.make_dual(x, t), t),
        lambda F, T, x, t: F.exit_dual_level(level=3),
    ],
)
def test_what_is_refused(call: Any) -> None:
    for F, T in ((ours, torchlab), (theirs, torch)):
        with F.dual_level():
            try:
                call(F, T, T.from_numpy(X.copy()), T.from_numpy(T_.copy()))
            except (RuntimeError, ValueError) as error:
                last = type(error)
            else:
                last = None
        if F is ours:
            mine = last
    assert mine is last and mine is not None


def test_printing() -> None:
    texts = []
    for F, T in ((ours, torchlab), (theirs, torch)):
        with F.dual_level():
            texts.append(repr(F.make_dual(T.ones(2), T.zeros(2))))
    assert texts[0] == texts[1]
