"""nn.functional against real PyTorch: values, strides, names of nodes, first and second
gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.nn.functional as LF

torch = pytest.importorskip("torch")
TF = torch.nn.functional

Spec = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def activations() -> dict[str, Spec]:
    shape = ((3, 4, 6),)
    plain = (
        "relu relu6 silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid softplus "
        "softsign logsigmoid "
        "tanhshrink hardshrink softshrink gelu glu rrelu"
    ).split()
    cases: dict[str, Spec] = {n: (lambda F, x, n=n: getattr(F, n)(x), shape) for n in plain}
    cases |= {
        "gelu_tanh": (lambda F, x: F.gelu(x, approximate="tanh"), shape),
        "elu_alpha": (lambda F, x: F.elu(x, 0.7), shape),
        "softplus_beta": (lambda F, x: F.softplus(x, 2.0, 1.0), shape),
        "threshold": (lambda F, x: F.threshold(x, 0.1, 2.0), shape),
        "prelu": (lambda F, x, w: F.prelu(x, w), ((3, 4, 6), (4,))),
        "glu_dim": (lambda F, x: F.glu(x, 1), shape),
        "softmax": (lambda F, x: F.softmax(x, -1), shape),
        "softmax_dim": (lambda F, x: F.softmax(x, 0), shape),
        "log_softmax": (lambda F, x: F.log_softmax(x, 1), shape),
        "softmin": (lambda F, x: F.softmin(x, 2), shape),
    }
    return cases


def normalizations() -> dict[str, Spec]:
    x = (4, 6, 5)
    return {
        "layer_norm": (lambda F, x, w, b: F.layer_norm(x, (6, 5), w, b), (x, (6, 5), (6, 5))),
        "layer_norm_plain": (lambda F, x: F.layer_norm(x, (5,)), (x,)),
        "rms_norm": (lambda F, x, w: F.rms_norm(x, (5,), w), (x, (5,))),
        "group_norm": (lambda F, x, w, b: F.group_norm(x, 3, w, b), (x, (6,), (6,))),
        "batch_norm": (
            lambda F, x, w, b: F.batch_norm(x, None, None, w, b, training=True),
            (x, (6,), (6,)),
        ),
        "batch_norm_flat": (lambda F, x: F.batch_norm(x, None, None, training=True), ((5, 3),)),
        "instance_norm": (lambda F, x, w, b: F.instance_norm(x, None, None, w, b), (x, (6,), (6,))),
        "local_response_norm": (lambda F, x: F.local_response_norm(x, 3), (x,)),
        "normalize": (lambda F, x: F.normalize(x, dim=1), (x,)),
    }


def convolutions() -> dict[str, Spec]:
    image, w = (2, 4, 7, 6), (6, 4, 3, 2)
    cases: dict[str, Spec] = {
        "conv1d": (lambda F, x, w, b: F.conv1d(x, w, b, 2, 1), ((2, 3, 9), (4, 3, 3), (4,))),
        "conv2d": (lambda F, x, w, b: F.conv2d(x, w, b), (image, w, (6,))),
        "conv2d_all": (
            lambda F, x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2), 2),
            (image, (6, 2, 3, 2)),
        ),
        "conv2d_same": (lambda F, x, w: F.conv2d(x, w, padding="same"), (image, w)),
        "conv2d_1x1": (lambda F, x, w: F.conv2d(x, w), (image, (3, 4, 1, 1))),
        "conv2d_depthwise": (lambda F, x, w: F.conv2d(x, w, groups=4), (image, (4, 1, 3, 3))),
        "conv3d": (lambda F, x, w: F.conv3d(x, w, padding=1), ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2))),
        "conv_transpose1d": (
            lambda F, x, w: F.conv_transpose1d(x, w, stride=2),
            ((2, 3, 5), (3, 2, 3)),
        ),
        "conv_transpose2d": (
            lambda F, x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2, 2),
            ((2, 4, 4, 3), (4, 3, 3, 2), (6,)),
        ),
        "linear": (lambda F, x, w, b: F.linear(x, w, b), ((3, 5, 4), (6, 4), (6,))),
        "bilinear": (lambda F, x, y, w: F.bilinear(x, y, w), ((3, 4), (3, 5), (2, 4, 5))),
        "unfold": (lambda F, x: F.unfold(x, 2, 2, 1, 2), (image,)),
        "fold": (lambda F, x: F.fold(x, (4, 5), 2), ((2, 8, 12),)),
        "pixel_shuffle": (lambda F, x: F.pixel_shuffle(x, 2), (image,)),
        "pixel_unshuffle": (lambda F, x: F.pixel_unshuffle(x, 2), ((2, 3, 4, 6),)),
    }
    modes = [
        ("nearest", 4),
        ("nearest-exact", 4),
        ("bilinear", 4),
        ("bicubic", 4),
        ("area", 4),
        ("linear", 3),
    ]
    for mode, ndim in modes:
        shape = (2, 3, 5, 4)[:ndim]
        cases[f"interpolate_{mode}"] = (
            lambda F, x, mode=mode: F.interpolate(x, scale_factor=1.7, mode=mode),
            (shape,),
        )
    cases["interpolate_corners"] = (
        lambda F, x: F.interpolate(x, (7, 3), mode="bilinear", align_corners=True),
        ((2, 3, 5, 4),),
    )
    cases["interpolate_antialias"] = (
        lambda F, x: F.interpolate(x, (3, 2), mode="bicubic", antialias=True),
        ((2, 3, 7, 6),),
    )
    return cases


def pools() -> dict[str, Spec]:
    image = ((2, 3, 7, 6),)
    return {
        "max_pool1d": (lambda F, x: F.max_pool1d(x, 3, 2, 1), ((2, 3, 8),)),
        "max_pool2d": (lambda F, x: F.max_pool2d(x, 2), image),
        "max_pool2d_all": (lambda F, x: F.max_pool2d(x, 3, 2, 1, 2, True), image),
        "max_pool2d_overlap": (lambda F, x: F.max_pool2d(x, 3, 1), image),
        "max_pool2d_indices": (lambda F, x: F.max_pool2d(x, 3, 2, return_indices=True), image),
        "max_pool3d": (lambda F, x: F.max_pool3d(x, 2), ((1, 2, 4, 5, 4),)),
        "avg_pool1d": (lambda F, x: F.avg_pool1d(x, 3, 2, 1), ((2, 3, 8),)),
        "avg_pool2d": (lambda F, x: F.avg_pool2d(x, (3, 2), 2, 1, True, False), image),
        "avg_pool2d_divisor": (lambda F, x: F.avg_pool2d(x, 2, divisor_override=3), image),
        "adaptive_avg_pool2d": (lambda F, x: F.adaptive_avg_pool2d(x, (3, 4)), image),
        "adaptive_avg_pool2d_1": (lambda F, x: F.adaptive_avg_pool2d(x, 1), image),
        "adaptive_max_pool2d": (lambda F, x: F.adaptive_max_pool2d(x, (3, 4)), image),
        "lp_pool2d": (lambda F, x: F.lp_pool2d(x * x, 3, 2), image),
    }


def ids(F: Any, values: list[int], shape: tuple[int, ...]) -> Any:
    package = torch if F is TF else torchlab
    return package.tensor(values).reshape(shape)


def constant(F: Any, shape: tuple[int, ...], seed: int = 5) -> Any:
    package = torch if F is TF else torchlab
    return package.tensor(
        np.random.default_rng(seed).uniform(0.1, 0.9, shape).tolist(), dtype=package.float64
    )


def losses() -> dict[str, Spec]:
    x = (5, 4)
    y = lambda F: ids(F, [0, 3, 1, 1, 2], (5,))
    both = (x, x)
    cases: dict[str, Spec] = {
        "nll_loss": (lambda F, x: F.nll_loss(x, y(F)), (x,)),
        "nll_loss_2d": (
            lambda F, x: F.nll_loss(x, ids(F, [0, 1, 2, -100], (2, 2, 1)), reduction="sum"),
            ((2, 3, 2, 1),),
        ),
        "cross_entropy": (lambda F, x: F.cross_entropy(x, y(F)), (x,)),
        "cross_entropy_none": (lambda F, x: F.cross_entropy(x, y(F), reduction="none"), (x,)),
        "cross_entropy_weight": (
            lambda F, x: F.cross_entropy(
                x, y(F), constant(F, (4,)), ignore_index=1, label_smoothing=0.1
            ),
            (x,),
        ),
        "cross_entropy_soft": (lambda F, x, t: F.cross_entropy(x, t.softmax(1)), both),
        "cross_entropy_deep": (
            lambda F, x: F.cross_entropy(x, ids(F, [0, 1, 2, 0], (2, 2)), label_smoothing=0.2),
            ((2, 3, 2),),
        ),
        "bce": (lambda F, x: F.binary_cross_entropy(x.sigmoid(), constant(F, (5, 4))), (x,)),
        "bce_logits": (
            lambda F, x, t: F.binary_cross_entropy_with_logits(x, t, pos_weight=constant(F, (4,))),
            both,
        ),
        "kl_div": (lambda F, x, t: F.kl_div(x, t.softmax(1), reduction="batchmean"), both),
        "kl_div_log": (lambda F, x, t: F.kl_div(x, t, reduction="sum", log_target=True), both),
        "smooth_l1": (lambda F, x, t: F.smooth_l1_loss(x, t, beta=0.5), both),
        "huber": (lambda F, x, t: F.huber_loss(x, t, delta=0.5, reduction="sum"), both),
        "poisson": (lambda F, x, t: F.poisson_nll_loss(x, t.exp(), full=True), both),
        "gaussian": (lambda F, x, t, v: F.gaussian_nll_loss(x, t, v.exp(), full=True), (x, x, x)),
        "multi_margin": (lambda F, x: F.multi_margin_loss(x, y(F), p=1), (x,)),
        "cosine_similarity": (lambda F, x, t: F.cosine_similarity(x, t), both),
        "pairwise_distance": (lambda F, x, t: F.pairwise_distance(x, t), both),
        "triplet": (lambda F, a, p, n: F.triplet_margin_loss(a, p, n, swap=True), (x, x, x)),
    }
    for name in ("mse_loss", "l1_loss"):
        for reduction in ("mean", "sum", "none"):
            cases[f"{name}_{reduction}"] = (
                lambda F, x, t, name=name, r=reduction: getattr(F, name)(x, t, reduction=r),
                both,
            )
    return cases


def lookups() -> dict[str, Spec]:
    q = (2, 2, 3, 4)
    mask = [True, False, True, True, True, True, False, False, True]
    return {
        "embedding": (
            lambda F, w: F.embedding(ids(F, [0, 2, 2, 1], (2, 2)), w, 1, scale_grad_by_freq=True),
            ((3, 4),),
        ),
        "embedding_bag": (
            lambda F, w: F.embedding_bag(ids(F, [0, 2, 2, 1], (4,)), w, ids(F, [0, 1], (2,))),
            ((3, 4),),
        ),
        "attention": (lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v), (q, q, q)),
        "attention_causal": (
            lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            (q, q, q),
        ),
        "attention_mask": (
            lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v, ids(F, mask, (3, 3))),
            (q, q, q),
        ),
        "attention_bias": (
            lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.3),
            (q, q, q, (3, 3)),
        ),
    }


CASES = activations() | normalizations() | convolutions() | pools() | losses() | lookups()
# PyTorch composes these of other operators, or names the node of its fused kernel.
OTHER_NODES = {
    "rrelu",
    "instance_norm",
    "bilinear",
    "normalize",
    "interpolate_antialias",
    "lp_pool2d",
    "cross_entropy_weight",
    "cross_entropy_deep",
    "cosine_similarity",
    "pairwise_distance",
    "attention_bias",
    "cross_entropy_soft",
    "gaussian",
    "multi_margin",
    "linear",
    "local_response_norm",
    "triplet",
    "max_pool1d",
    "avg_pool1d",
}
# PyTorch cannot differentiate these twice.
ONCE = {
    "hardsigmoid",
    "multi_margin",
    "embedding_bag",
    "attention",
    "attention_causal",
    "attention_mask",
}


def data(shapes: tuple[tuple[int, ...], ...], dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(len(shapes) + sum(map(sum, shapes)))
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def leaves(package: Any, arrays: list[np.ndarray]) -> list[Any]:
    return [package.from_numpy(a.copy()).requires_grad_() for a in arrays]


def first(r: Any) -> Any:
    return r[0] if isinstance(r, tuple) else r


def _second(g: Any, like: np.ndarray) -> np.ndarray:
    return np.zeros_like(like) + (0 if g is None else (g.detach() + 0).numpy())


def run(package: Any, F: Any, f: Any, arrays: list[np.ndarray], second: bool) -> dict[str, Any]:
    xs = leaves(package, arrays)
    y = f(F, *xs)
    out = {"value": first(y).detach().numpy(), "stride": first(y).stride()}
    if isinstance(y, tuple):
        out["indices"] = y[1].numpy()
    y = first(y)
    out["node"] = type(y.grad_fn).__name__
    weights = np.cos(np.arange(y.numel(), dtype=arrays[0].dtype)).reshape(tuple(y.shape))
    loss = (y * package.from_numpy(weights)).sum()
    grads = package.autograd.grad(loss, xs, create_graph=second, allow_unused=True)
    for i, g in enumerate(grads):
        out[f"grad{i}"] = None if g is None else g.detach().numpy()
    if second:
        total = sum((g * g).sum() for g in grads if g is not None)
        if total.requires_grad:
            twice = package.autograd.grad(total, xs, allow_unused=True)
            for i, g in enumerate(twice):
                out[f"second{i}"] = _second(g, arrays[i])
    return out


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_like_pytorch(name: str, dtype: str) -> None:
    f, shapes = CASES[name]
    if dtype == "float32" and name in ("cross_entropy_weight", "bce", "bce_logits"):
        dtype = "float64"  # their constants are
    arrays = data(shapes, dtype)
    second = dtype == "float64" and name not in ONCE
    ours = run(torchlab, LF, f, arrays, second)
    theirs = run(torch, TF, f, arrays, second)
    tolerance = 2e-5 if dtype == "float32" else 1e-9
    if name == "hardsigmoid":  # PyTorch multiplies by 1/6 in float32
        tolerance = 1e-6
    for key, want in theirs.items():
        if key == "node":
            assert ours[key] == want or name in OTHER_NODES
        elif key == "stride" or want is None:
            assert ours[key] == want or name == "instance_norm", key
        elif key in ours:
            assert ours[key].dtype == want.dtype, key
            np.testing.assert_allclose(ours[key], want, tolerance, tolerance, err_msg=key)
        else:  # no path to a second gradient here: it must be zero there
            assert not want.any(), key


@pytest.mark.parametrize(
    "name",
    ["silu", "elu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "mish", "selu", "celu"],
)
def test_in_place_gradients(name: str) -> None:
    a = np.linspace(-4, 4, 17)
    grads = []
    for package, F in ((torchlab, LF), (torch, TF)):
        x = package.from_numpy(a.copy()).requires_grad_()
        y = getattr(F, name)(x * 2, inplace=True)
        (y * y).sum().backward()
        grads.append(x.grad.numpy())
    tolerance = 1e-6 if name == "hardsigmoid" else 1e-9  # PyTorch multiplies by 1/6 in float32
    np.testing.assert_allclose(*grads, tolerance, tolerance)


@pytest.mark.parametrize(
    "name",
    ["softmax", "log_softmax", "gelu", "silu", "softplus", "mish", "logsigmoid", "hardswish"],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits(name: str, dtype: str) -> None:
    a = np.linspace(-5, 5, 24, dtype=np.float32).reshape(4, 6)
    results = []
    for package, F in ((torchlab, LF), (torch, TF)):
        x = package.from_numpy(a.copy()).to(getattr(package, dtype))
        args = (1,) if "softmax" in name else ()
        y = getattr(F, name)(x, *args)
        assert y.dtype is getattr(package, dtype)
        results.append(y.float().numpy())
    np.testing.assert_allclose(*results, 1e-2, 1e-3)


def test_running_statistics_over_several_batches() -> None:
    rng = np.random.default_rng(0)
    batches = [rng.standard_normal((4, 3, 5)).astype("float32") for _ in range(4)]
    stats = []
    for package, F in ((torchlab, LF), (torch, TF)):
        mean, var = package.zeros(3), package.ones(3)
        for b in batches:
            F.batch_norm(package.from_numpy(b), mean, var, training=True)
        F.instance_norm(package.from_numpy(batches[0]), mean, var)
        stats.append((mean.numpy(), var.numpy()))
    for ours, theirs in zip(*stats):
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
        "rrelu",
    ],
)
def test_the_same_random_numbers(name: str) -> None:
    shape = {"dropout1d": (2, 3, 4), "dropout3d": (2, 3, 2, 2, 2)}.get(name, (2, 3, 4, 5))
    a = np.random.default_rng(1).standard_normal(shape).astype("float32")
    results = []
    for package, F in ((torchlab, LF), (torch, TF)):
        package.manual_seed(7)
        results.append(getattr(F, name)(package.from_numpy(a), training=True).numpy())
    np.testing.assert_allclose(*results, 1e-6, 1e-6)


def test_infinities_and_nan() -> None:
    a = np.array([[math.inf, 1.0, math.nan, -math.inf], [-math.inf] * 4], np.float64)
    names = [
        "softmax",
        "log_softmax",
        "gelu",
        "silu",
        "softplus",
        "elu",
        "hardtanh",
        "hardswish",
        "logsigmoid",
        "leaky_relu",
    ]
    for name in names:
        args = (1,) if "softmax" in name else ()
        ours = getattr(LF, name)(torchlab.from_numpy(a.copy()), *args).numpy()
        theirs = getattr(TF, name)(torch.from_numpy(a.copy()), *args).numpy()
        np.testing.assert_allclose(ours, theirs, 1e-12, err_msg=name)


def test_max_pool_of_nan_and_equal_elements() -> None:
    a = np.array([[[[1.0, 1, math.nan, 2], [1, 1, 5, math.nan], [-math.inf] * 4, [-math.inf] * 4]]])
    for options in ({}, {"padding": 1, "stride": 1}):
        ours = LF.max_pool2d(torchlab.from_numpy(a.copy()), 2, return_indices=True, **options)
        theirs = TF.max_pool2d(torch.from_numpy(a.copy()), 2, return_indices=True, **options)
        np.testing.assert_array_equal(ours[0].numpy(), theirs[0].numpy())
        assert torchlab.isnan(ours[0]).numpy().tolist() == torch.isnan(theirs[0]).numpy().tolist()
        finite = ~np.isnan(theirs[0].numpy())
        np.testing.assert_array_equal(ours[1].numpy()[finite], theirs[1].numpy()[finite])
