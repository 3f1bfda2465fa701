"""What the optimizers share: checks of options, scratch memory, and the choice between two ways.

Note: two ways to make a step. The *array way* works on the NumPy arrays themselves, a chunk at a
time so that the chunk stays in the cache, in place and without a single temporary; it takes
contiguous host parameters of float32 or float64, which is nearly all there is. The *tensor way* is
the same formula in operators: for every other dtype, device and layout, for
`differentiable=True`, and while a mode wants to see operators. Tests hold them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import enable_grad, set_grad_enabled

CHUNK = 1 << 15  # elements: with state and scratch, six arrays of 128 KiB, about what L2 holds


class Scratch:
    """Three chunks of memory for each dtype, made once."""

    def __init__(self) -> None:
        self._arrays: dict[Any, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def of(self, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three arrays for a dtype; what is in them is of no value."""
        found = self._arrays.get(dtype)
        if found is None:
            found = self._arrays[dtype] = tuple(np.empty(CHUNK, dtype) for _ in range(3))  # type: ignore[assignment]
        return found  # type: ignore[return-value]


SCRATCH = Scratch()


def chunks(arrays: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The arrays (contiguous, of one size) cut into flat pieces of at most CHUNK elements."""
    flat = [a.reshape(-1) for a in arrays]
    n = flat[0].size
    if n <= CHUNK:
        yield tuple(flat)
        return
    for low in range(0, n, CHUNK):
        yield tuple([a[low : low + CHUNK] for a in flat])


def as_arrays(group: dict[str, Any], p: Tensor, tensors: tuple[Any, ...]) -> bool:
    """Whether the array way may take parameter `p` with its gradient and state."""
    k = p._k
    if not k.fp or k.itemsize < 4 or group["differentiable"]:
        return False
    if SLOW and (TLS.function_modes or TLS.dispatch_modes):
        return False
    return all(t._k is k for t in tensors)


def number(x: Any) -> float:
    """An option's value where it may be a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x  # type: ignore[attr-defined]


def counter(p: Tensor, group: dict[str, Any], value: float = 0.0) -> Tensor:
    """The 0-d tensor that counts the steps: on the CPU, as PyTorch's, unless capturable or
    fused."""
    fused, capturable = group.get("fused"), group.get("capturable")
    wide = dt.get_default_dtype() is dt.float64 and not fused
    place = p.device if capturable or fused else "cpu"
    return aten.tensor(value, dtype=dt.float64 if wide else dt.float32, device=place)


def count(steps: Tensor) -> float:
    """Count a step; returns how many there have been."""
    a = steps._a
    np.add(a, 1, out=a)
    wrote(steps)
    return a.item()


def gradients(group: dict[str, Any], refusal: str) -> list[tuple[Tensor, Tensor]]:
    """The group's parameters that have a gradient, with it. Raises RuntimeError(refusal) if one is
    sparse, before anything has changed."""
    found = []
    for p in group["params"]:
        g = p._g
        if g is not None:
            if g.is_sparse:
                raise RuntimeError(refusal)
            found.append((p, g))
    return found


def run_closure(closure: Callable[[], Any] | None) -> Any:
    """What the closure returns (the loss), recorded even where the step is not."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def recording(group: dict[str, Any]) -> Any:
    """The context of the tensor way: recorded only if the step is to be differentiable."""
    return set_grad_enabled(bool(group["differentiable"]) and (TLS.grad))


def check_lr(lr: Any, foreach: Any, capturable: bool) -> None:
    """Refuse learning rates that no optimizer takes."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_options(**options: Any) -> None:
    """Refuse negative values."""
    for name, value in options.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Refuse decay rates outside [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_fused(fused: Any, foreach: Any, differentiable: bool) -> None:
    """`foreach` says how PyTorch computes and changes nothing here; `fused` asks for one generated
    loop a parameter (`torchlab.optim._fused`). The two exclude each other."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
