"""Initial values of parameters. The same seed gives PyTorch's values.

All functions write in place without recording and return their tensor.
Source: https://docs.pytorch.org/docs/2.13/nn.init.html
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch import watching
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.written import BY_NAME
from torchlab.autograd.grad_mode import no_grad

_LINEAR = frozenset(
    (
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
    )
)


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which an activation shrinks a signal's spread; param: leaky_relu's slope.

    Raises ValueError for an unknown activation or a slope that is no number.
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """How many inputs an output depends on, and how many outputs an input reaches."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    outputs, inputs, *window = tensor.shape
    area = math.prod(window)
    return inputs * area, outputs * area


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal with the given mean and standard deviation."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Normal, but only within [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta or tensor.numel() == 0:
        return tensor
    low, high = (math.erf((x - mean) / std / math.sqrt(2.0)) / 2 for x in (a, b))
    draw = _redrawn_normals if high - low > 0.3 else _rejected_uniforms
    with no_grad():
        return tensor.copy_(draw(tensor, mean, std, a, b, generator))


def _redrawn_normals(
    tensor: Any, mean: float, std: float, a: float, b: float, generator: Any
) -> Any:
    """Normal numbers, drawn again (all places at once) until none lies outside [a, b]."""
    low, high = (aten.tensor(x, dtype=tensor.dtype).item() for x in (a, b))
    found = aten.empty_like(tensor).normal_(mean, std, generator=generator)
    while (outside := (found < low) | (found > high)).any():
        again = aten.empty_like(tensor).normal_(mean, std, generator=generator)
        found = aten.where(outside, again, found)
    return found


def _rejected_uniforms(
    tensor: Any, mean: float, std: float, a: float, b: float, generator: Any
) -> Any:
    """Where [a, b] holds little of the distribution: uniform numbers in it, each accepted with a
    probability in proportion to its density (von Neumann's rejection)."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    found = rejected = None
    while rejected is None or rejected.any():
        drawn = aten.empty_like(tensor).uniform_(a, b, generator=generator)
        chance = aten.empty_like(tensor).uniform_(generator=generator).log()
        refused = chance > ((drawn - mean) / std) ** 2 * -0.5 - peak
        if found is None:
            found, rejected = drawn, refused
        else:
            found = aten.where(rejected, drawn, found)
            rejected = rejected & refused
    return found


def constant_(tensor: Any, val: float) -> Any:
    """`val` everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Zeros."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Any) -> Any:
    """The identity matrix, for (n, m) tensors."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(wrap(np.eye(*tensor.shape, dtype=np.float32)))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Convolution weights (3 to 5 dimensions) that pass channels through; in `groups` groups."""
    shape = tuple(tensor.shape)
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    each = shape[0] // groups
    center = tuple(n // 2 for n in shape[2:])
    values = np.zeros(shape, np.float32)
    for g in range(groups):
        for d in range(min(each, shape[1])):
            values[(g * each + d, d, *center)] = 1
    with no_grad():
        return tensor.copy_(wrap(values))


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform with standard deviation gain·√(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal with standard deviation gain·√(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _without_elements(tensor: Any) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Uniform with standard deviation gain / √fan (He et al., 2015); a: leaky_relu's slope."""
    if _without_elements(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Normal with standard deviation gain / √fan."""
    if _without_elements(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """A (semi-)orthogonal matrix times `gain`; dimensions after the first count as one (Saxe et
    al.,
    2013)."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    with no_grad():
        drawn = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
        a = drawn.cpu()._a
        wide = a.shape[0] < a.shape[1]
        q, r = np.linalg.qr(a.T if wide else a)
        q = q * np.sign(np.diagonal(r))  # makes the decomposition unique, and so uniform
        q = q.T if wide else q
        return tensor.copy_(wrap(np.ascontiguousarray(q).reshape(tensor.shape))).mul_(gain)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """A matrix with this share of zeros in each column, normal elsewhere (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        values = tensor.detach().cpu()._a.copy()
        for j in range(columns):
            # The shuffle comes from the default generator, as in PyTorch.
            values[aten.randperm(rows)._a[:zeros], j] = 0
        return tensor.copy_(wrap(values))


def _old_name(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The name without underscore that `fn` had before PyTorch 0.4."""
    new = fn.__name__
    old = new[:-1]

    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return fn(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"Deprecated: the old name of `{new}`."
    return deprecated


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)

for _function in (uniform_, normal_, constant_, kaiming_uniform_):
    watching.watch(_function, layout=BY_NAME)  # those about which PyTorch asks
