"""vmap of an operator is the operator on each element, stacked: a fixed set of PyTorch's own table
of operators, all of its tensors batched, the first alone and the second alone, with PyTorch's loop
as the measure; and the gradient of each element."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.func
from torchlab._core import pytree
from torchlab._core.dispatch import registry

torch = pytest.importorskip("torch")
methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")

SIZE = 3
SAMPLES = 2
NAMES = """
    add sub mul div pow maximum where clamp lerp addcmul masked_fill sigmoid nn.functional.gelu
    sum mean prod amax argmax var std logsumexp norm linalg.vector_norm median all count_nonzero
    cumsum cumprod cummax softmax log_softmax sort topk kthvalue mode
    reshape permute transpose squeeze unsqueeze expand select split unbind diagonal unfold
    flip roll rot90 tile repeat cat stack hstack movedim tril diag_embed nn.functional.pad
    mm mv dot bmm baddbmm addmm matmul einsum kron outer tensordot linalg.cross cdist
    gather scatter scatter_add index_select index_add index_put take take_along_dim
    __getitem__ nn.functional.embedding
    linalg.inv linalg.det linalg.solve linalg.cholesky linalg.qr linalg.lu_factor
    fft.fft fft.irfft fft.rfft2 nn.functional.conv1d nn.functional.conv2d
    nn.functional.conv_transpose2d nn.functional.max_pool2d nn.functional.avg_pool2d
    nn.functional.adaptive_avg_pool2d nn.functional.interpolate nn.functional.grid_sample
    nn.functional.layer_norm nn.functional.group_norm
    nn.functional.rms_norm nn.functional.linear
    nn.functional.mse_loss nn.functional.cross_entropy nn.functional.nll_loss
    nn.functional.binary_cross_entropy nn.functional.smooth_l1_loss
""".split()
OPS: dict[str, Any] = {}
for _op in methods.op_db:
    if _op.name in NAMES:
        OPS.setdefault(_op.name, _op)


def converted(x: Any) -> Any:
    """The same argument for torchlab."""
    if isinstance(x, torch.Tensor):
        return torchlab.from_numpy(x.detach().resolve_conj().resolve_neg().numpy().copy())
    return getattr(torchlab, str(x)[6:]) if isinstance(x, torch.dtype) else x


def function_of(op: Any) -> Callable[..., Any]:
    """The same function of torchlab's."""
    f = op.op
    if isinstance(f, FunctionType) and f.__module__.startswith("torch.testing"):
        return FunctionType(  # a lambda over `torch`
            f.__code__, {**f.__globals__, "torch": torchlab}, f.__name__, f.__defaults__,
            f.__closure__,
        )  # fmt: skip
    space, _, name = op.name.rpartition(".")
    if op.name.startswith("__"):
        return getattr(torchlab.Tensor, op.name)  # type: ignore[no-any-return]
    owner: Any = torchlab
    for part in space.split(".") if space else ():
        owner = getattr(owner, part)
    return getattr(owner, name)  # type: ignore[no-any-return]


def several(t: Any) -> Any:
    """A batch whose first element is `t`."""
    if t.dtype.is_floating_point or t.dtype.is_complex:
        return torch.stack([t, t * 0.9, t * 0.8])
    return torch.stack([t] * SIZE)


def cases(op: Any) -> Any:
    """(leaves, structure, which leaves are batched and their batches) of samples."""
    kind = torch.float64 if torch.float64 in op.supported_dtypes("cpu") else torch.int64
    torch.manual_seed(0)
    for sample in itertools.islice(op.sample_inputs("cpu", kind), SAMPLES):
        leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        for chosen in (at, at[:1], at[1:2]):
            if chosen:
                yield leaves, spec, {i: several(leaves[i]) for i in chosen}


def results(call: Any, leaves: list[Any], spec: Any, unflatten: Any, flatten: Any) -> list[Any]:
    first, args, kwargs = unflatten(leaves, spec)
    return flatten(call(first, *args, **kwargs))  # type: ignore[no-any-return]


def expected_rows(op: Any, leaves: list[Any], spec: Any, batches: dict[int, Any]) -> list[Any]:
    """PyTorch's results for each element, stacked. Nothing where PyTorch refuses."""
    rows = []
    for n in range(SIZE):
        row = [batches[i][n].clone() if i in batches else x for i, x in enumerate(leaves)]
        try:
            rows.append(
                results(op.op, row, spec, torch.utils._pytree.tree_unflatten,
                        torch.utils._pytree.tree_leaves)
            )  # fmt: skip
        except (RuntimeError, IndexError):  # the scaled samples may be none of its domain
            return []
    return [torch.stack(list(column)) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("name", sorted(OPS))
@pytest.mark.filterwarnings("ignore")
def test_operators(name: str) -> None:
    op, call, n = OPS[name], function_of(OPS[name]), 0
    for leaves, spec, batches in cases(op):
        wanted = expected_rows(op, leaves, spec, batches)
        if not wanted:
            continue
        mine = [converted(batches.get(i, x)) for i, x in enumerate(leaves)]
        tree = torch.utils._pytree.tree_unflatten(mine, spec)
        _, own = pytree.tree_flatten(tree)

        def mapped(*xs: Any, mine: Any = mine, own: Any = own, batches: Any = batches) -> list[Any]:
            values = dict(zip(batches, xs, strict=True))
            row = [values.get(i, x) for i, x in enumerate(mine)]
            return results(call, row, own, pytree.tree_unflatten, pytree.tree_leaves)

        got = torchlab.func.vmap(mapped)(*(mine[i] for i in batches))
        assert len(got) == len(wanted)
        for g, e in zip(got, wanted, strict=True):
            assert tuple(g.shape) == tuple(e.shape)
            assert str(g.dtype) == str(e.dtype)
            np.testing.assert_allclose(
                g.numpy(), e.detach().resolve_conj().numpy(), rtol=1e-6, atol=1e-8
            )
        n += 1
    assert n


def real(outputs: Any) -> list[Any]:
    return [y for y in outputs if y.is_floating_point()]


@pytest.mark.parametrize("name", sorted(n for n, op in OPS.items() if op.supports_autograd))
@pytest.mark.filterwarnings("ignore")
def test_gradients_of_each_element(name: str) -> None:
    op, call = OPS[name], function_of(OPS[name])
    for leaves, spec, batches in itertools.islice(cases(op), 2):
        moving = [i for i in batches if batches[i].dtype.is_floating_point]
        if not moving or not expected_rows(op, leaves, spec, batches):
            continue
        wanted = []
        for n in range(SIZE):
            row = [batches[i][n].clone() if i in batches else x for i, x in enumerate(leaves)]
            for i in moving:
                row[i].requires_grad_()
            made = results(op.op, row, spec, torch.utils._pytree.tree_unflatten,
                           torch.utils._pytree.tree_leaves)  # fmt: skip
            loss = sum(y.sin().sum() for y in real(made))
            if not isinstance(loss, torch.Tensor):
                break
            inputs = [row[i] for i in moving]
            try:
                found = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
            except RuntimeError:  # has no derivative
                break
            wanted.append(found)
        if len(wanted) < SIZE:
            continue
        mine = [converted(batches.get(i, x)) for i, x in enumerate(leaves)]
        _, own = pytree.tree_flatten(torch.utils._pytree.tree_unflatten(mine, spec))

        def loss_of(*xs: Any, mine: Any = mine, own: Any = own, batches: Any = batches) -> Any:
            values = dict(zip(batches, xs, strict=True))
            row = [values.get(i, x) for i, x in enumerate(mine)]
            made = results(call, row, own, pytree.tree_unflatten, pytree.tree_leaves)
            return sum(y.sin().sum() for y in real(made))

        places = tuple(n for n, i in enumerate(batches) if i in moving)
        gradient = torchlab.func.vmap(torchlab.func.grad(loss_of, argnums=places))
        got = gradient(*(mine[i] for i in batches))
        for g, e in zip(got, zip(*wanted, strict=True), strict=True):
            np.testing.assert_allclose(
                g.numpy(), torch.stack(e).numpy(), rtol=1e-6, atol=1e-8, equal_nan=True
            )


def test_the_set_is_all_there() -> None:
    assert set(NAMES) == set(OPS)
    assert registry.OPS
