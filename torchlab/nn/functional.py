"""`torchlab.nn.functional`: the functions that modules are made of.

Most names are operators or their public calls: they come lazily from the registry (`__getattr__`).
Written out here is what has another signature than the operator, or is Python above operators.
Source: https://docs.pytorch.org/docs/2.13/nn.functional.html
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from numbers import Integral
from types import FunctionType
from typing import Any

from torchlab._core.dispatch import registry, watching
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.written import layout
from torchlab._core.ops import activation as _activation
from torchlab._core.ops import embedding as _embedding
from torchlab._core.ops import patches as _patches
from torchlab._core.ops.kernels import reduction_number
from torchlab._core.ops.scaled_products import ScalingType, SwizzleType  # noqa: F401
from torchlab._core.tensor import Tensor

_EXTRA = ("sigmoid", "tanh")  # operators of torch that are public here, too
_OWN = (  # PyTorch has them in torch and here, as two functions; graphs of torch.fx tell which
    "adaptive_max_pool1d", "celu", "max_pool1d", "max_pool2d", "max_pool3d", "rms_norm", "selu",
)  # fmt: skip
_OVERRIDES = (  # of torchlab.overrides
    "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    try:
        if name in _OWN:
            value = _own(registry.function(name))
        else:
            value = registry.function(name, "nn.functional")
    except AttributeError:
        if name in _OVERRIDES:
            value = getattr(importlib.import_module("torchlab.overrides"), name)
        elif name in _EXTRA:
            value = getattr(aten, name)
        else:
            raise AttributeError(
                f"module 'torchlab.nn.functional' has no attribute '{name}'"
            ) from None
    globals()[name] = value
    return value


def _own(fn: Any) -> Any:
    """A function of its own that does what `fn` does."""
    code = watching.code_of(fn)
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__, made.__doc__, made.__module__ = fn.__kwdefaults__, fn.__doc__, __name__
    made.__dict__.update(fn.__dict__)  # its signature, where it accepts other names, too
    watching.watch(made, layout=layout("nn.functional", made.__name__))
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.FUNCTIONS.get("nn.functional", ()), *_EXTRA, *_OVERRIDES})


# ---- choosing -----------------------------------------------------------------------------------


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """The function that calls `if_true` or `if_false`, as the argument at `arg_index` or with the
    name `arg_name` says."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if len(args) > arg_index else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    fn.__module__, fn.__name__ = module_name, func_name
    fn.__doc__ = if_false.__doc__
    return fn


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError with `message`, if `arg` is neither an int nor a pair."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


# ---- activations --------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); NaN stays."""
    return aten.relu_(input) if inplace else aten.relu(input)


def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`."""
    return aten.relu_(input)


def rrelu_(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """In-place version of `rrelu`."""
    return aten.rrelu_(input, lower, upper, training, generator)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)."""
    return _activation.silu.inplace(input) if inplace else _activation.silu.call(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x))."""
    return _activation.mish.inplace(input) if inplace else _activation.mish.call(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (exp(x) − 1)."""
    return elu_(input, alpha) if inplace else _activation.elu.call(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """In-place version of `elu`: x · scale where x > 0, else
    alpha · scale · (exp(x · input_scale) − 1)."""
    return _activation.elu.inplace(input, alpha, scale, input_scale)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x."""
    return (
        leaky_relu_(input, negative_slope)
        if inplace
        else _activation.leaky_relu.call(input, negative_slope)
    )


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place version of `leaky_relu`."""
    return _activation.leaky_relu.inplace(input, negative_slope)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x limited to [min_val, max_val]."""
    return (
        hardtanh_(input, min_val, max_val)
        if inplace
        else _activation.hardtanh.call(input, min_val, max_val)
    )


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place version of `hardtanh`."""
    return _activation.hardtanh.inplace(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6."""
    return _activation.hardswish.inplace(input) if inplace else _activation.hardswish.call(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return (
        _activation.hardsigmoid.inplace(input) if inplace else _activation.hardsigmoid.call(input)
    )


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`, computed in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("softmax", input._a.ndim)
    return aten.softmax(input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """x − log Σ exp(x) along `dim`, computed in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input._a.ndim)
    return aten.log_softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """softmax(−x)."""
    if dim is None:
        dim = _implicit_dim("softmin", input._a.ndim)
    return aten.softmax(-input, dim, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution (arXiv:1611.00712); `hard`: one-hot, with the
    soft
    sample's gradient."""
    noise = -aten.log(aten.exponential_(aten.empty_like(aten.detach(logits))))
    soft = aten.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = aten.argmax(aten.detach(soft), dim, True)
    return (
        aten.scatter(aten.zeros_like(aten.detach(logits)), dim, best, 1.0)
        - aten.detach(soft)
        + soft
    )


# ---- dropout ------------------------------------------------------------------------------------


def _probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability p, in training, and divides by 1 − p."""
    _probability(p)
    return aten.dropout_(input, p, training) if inplace else aten.dropout(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of SELU networks."""
    _probability(p)
    return (
        aten.alpha_dropout_(input, p, training)
        if inplace
        else aten.alpha_dropout(input, p, training)
    )


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Alpha dropout of whole channels."""
    _probability(p)
    return (aten.feature_alpha_dropout_ if inplace else aten.feature_alpha_dropout)(
        input, p, training
    )


def _feature(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return (
        aten.feature_dropout_(input, p, training)
        if inplace
        else aten.feature_dropout(input, p, training)
    )


def _odd_channels(name: str, got: str, dims: int, accepted: str, then: str = ". ") -> str:
    """What is said of an input that has not the dims of channels over `dims` spatial ones."""
    spatial = f"{dims} spatial dimension{'s' if dims > 1 else ''}"
    return (
        f"{name}: {got}{then}Note that {name} exists to provide channel-wise dropout on inputs"
        f" with {spatial}, a channel dimension, and an optional batch dimension (i.e. {accepted}"
        " inputs)."
    )


_USE_DROPOUT = (
    ", which is deprecated and will result in an error in a future release. To retain the behavior"
    " and silence this warning, please use dropout instead. "
)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (N, C, L) or (C, L) with probability p."""
    _probability(p)
    n = input._a.ndim
    if n not in (2, 3):
        got = f"Expected 2D or 3D input, but received a {n}D input"
        raise RuntimeError(_odd_channels("dropout1d", got, 1, "2D or 3D"))
    return _feature_of_one(input, p, training, inplace, n == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (N, C, H, W) with probability p."""
    _probability(p)
    n = input._a.ndim
    if n not in (3, 4):
        got = f"Received a {n}-D input to dropout2d"
        said = _odd_channels("dropout2d", got, 2, "3D or 4D", _USE_DROPOUT)
        warnings.warn(said, stacklevel=2)
    if n == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout"
            " behavior is desired - input is interpreted as shape (N, C, L), where C is the channel"
            " dim. This behavior will change in a future release to interpret the input as one"
            " without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise"
            " dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature(input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p."""
    _probability(p)
    n = input._a.ndim
    if n not in (4, 5):
        got = f"Received a {n}-D input to dropout3d"
        said = _odd_channels("dropout3d", got, 3, "4D or 5D", _USE_DROPOUT)
        warnings.warn(said, stacklevel=2)
    return _feature_of_one(input, p, training, inplace, n == 5)


def _feature_of_one(input: Tensor, p: float, training: bool, inplace: bool, batch: bool) -> Tensor:
    """Channel-wise dropout of a batch, or of one sample without the dim of the batch."""
    if batch:
        return _feature(input, p, training, inplace)
    if inplace:
        return aten.squeeze_(_feature(aten.unsqueeze_(input, 0), p, training, True), 0)
    return aten.squeeze(_feature(aten.unsqueeze(input, 0), p, training, False), 0)


# ---- normalization ------------------------------------------------------------------------------


def _enough_values(size: Any) -> None:
    n = size[0]
    for s in size[2:]:
        n *= s
    if n == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel of (N, C, …); in training, by the batch, and the running statistics
    move."""
    if training:
        _enough_values(input.shape)
    if eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive, but got {eps}")
    return aten.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Each sample over its last dims, `normalized_shape`: mean 0 and variance 1, then scaled."""
    return aten.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Each sample's channels in `num_groups` groups: mean 0 and variance 1, then scaled.

    Raises ValueError where a group has one value only.
    """
    size = input.shape
    if len(size) >= 2 and num_groups > 0 and size[1] % num_groups == 0:
        _enough_values([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return aten.group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel of each sample of (N, C, …)."""
    if use_input_stats:
        size = input.shape
        spatial = 1
        for s in size[2:]:
            spatial *= s
        if spatial == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {size}"
            )
    return aten.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha · mean of x² over `size` neighbouring channels) ^ beta."""
    dim = input._a.ndim
    if dim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {dim} "
            "dimensions)"
        )
    if input._a.size == 0:
        return input
    shape = input._a.shape
    squares = aten.reshape(input * input, (shape[0], 1, shape[1], -1))
    wide = aten.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2), 0.0)
    means = aten.avg_pool2d(wide, (size, 1), 1)
    return input / aten.pow(aten.reshape(means, shape) * alpha + k, beta)


# ---- pooling, sparse ----------------------------------------------------------------------------


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` with the places of the maxima."""
    return aten.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` with the places of the maxima."""
    return aten.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Any:
    """`adaptive_max_pool2d` with the places of the maxima."""
    return aten.adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Any:
    """`adaptive_max_pool1d` with the places of the maxima."""
    return aten.adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Any:
    """`adaptive_max_pool3d` with the places of the maxima."""
    return aten.adaptive_max_pool3d(input, output_size, True)


def _unpool(
    n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, size: Any
) -> Tensor:
    for name, v in {"kernel_size": kernel_size, "stride": stride, "padding": padding}.items():
        check_ints(f"max_unpool{n}d", name, v)
    kernel, stride, padding = (
        (v if isinstance(v, int) else int(v),) * n if isinstance(v, Integral) else tuple(v)
        for v in (kernel_size, kernel_size if stride is None else stride, padding)
    )
    if size is None:
        spatial = input._a.shape[-n:]
        size = tuple(
            (m - 1) * s + k - 2 * p for m, s, k, p in zip(spatial, stride, kernel, padding)
        )
    else:
        size = tuple(size)[-n:]
    return aten.max_unpool(input, indices, size)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts maxima back where they came from, zeros elsewhere."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts maxima back where they came from, zeros elsewhere."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts maxima back where they came from, zeros elsewhere."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """weight[input]: (…) → (…, columns). max_norm shrinks the looked-up rows of `weight` in
    place."""
    return _embedding.lookup(
        input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
    )


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of each bag of rows of `weight`."""
    return _embedding.bags(
        input,
        weight,
        offsets,
        max_norm,
        norm_type,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """All patches of (N, C, H, W) as columns: (N, C · taps, positions)."""
    return _patches.unfold(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The sum of patches put back into (N, C, *output_size)."""
    return _patches.fold(input, output_size, kernel_size, dilation, padding, stride)


# ---- losses -------------------------------------------------------------------------------------


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The CTC loss of log probabilities (T, N, C) or (T, C) for targets (N, S), or all of them one
    after the other (total).

    reduction: "none", "mean" (each loss over its target's length) or "sum". zero_infinity: losses
    of targets that the input is too short for count as zero.
    """
    return aten.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction_number(reduction),
        zero_infinity,
    )


# Note [Functions that ask] in torchlab._core.dispatch.watching.
for _name, _function in list(globals().items()):
    if _name[0] != "_" and getattr(_function, "__module__", None) == __name__:
        if _name not in watching.UNASKED:
            watching.watch(_function, layout=layout("nn.functional", _name))
