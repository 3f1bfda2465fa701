"""Batching rules of operators on images and sequences: (N, C, …) with N or without.

Where N may be left out, the hidden dimension takes its place; else the two become one.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batching.calls import Call, rule
from torchlab._core.dispatch.levels import mapped
from torchlab._core.dispatch.registry import aten


def fold(c: Call, tensors: list[str], rank: int, sizes: str | None = None) -> Any:
    """Run on tensors that all have the logical rank `rank` (with N) or one less. `sizes`: an
    argument that is a whole shape."""
    first = c.rank(tensors[0])
    if any(c.rank(n) != first for n in tensors) or first not in (rank, rank - 1):
        return c.loop()
    if any(c.has(n) and n not in tensors for n in c.names):
        return c.loop()
    whole = {n: c.full(n) for n in tensors}
    changed: dict[str, Any] = {}
    merge = first == rank
    if sizes is not None:
        shape = tuple(c.raw(sizes))
        changed[sizes] = (c.n * shape[0], *shape[1:]) if merge else (c.n, *shape)
    if not merge:
        return c.run(**whole, **changed)
    if c.n * c.shape(tensors[0])[0] == 0:
        return c.loop()
    changed |= {n: aten.flatten(x, 0, 1) for n, x in whole.items()}
    made = c.call(**changed)
    return c.wrap(mapped(lambda r: aten.unflatten(r, 0, (c.n, -1)), made))


def _folding(rank: int, *tensors: str, sizes: str | None = None) -> Any:
    return lambda c: fold(c, list(tensors or ("self",)), rank, sizes)


for _d in (1, 2, 3):
    _rank = _d + 2
    for _name in ("reflection_pad", "replication_pad"):
        rule(f"{_name}{_d}d")(_folding(_rank))
        rule(f"{_name}{_d}d_backward")(_folding(_rank, "grad_output", sizes="sizes"))
    for _name in ("upsample_nearest", "_upsample_nearest_exact"):
        rule(f"{_name}{_d}d")(_folding(_rank))
        rule(f"{_name.lstrip('_')}{_d}d_backward")(_folding(_rank, "grad_output"))
for _name, _d in (
    ("upsample_linear", 1), ("upsample_bilinear", 2), ("upsample_bicubic", 2),
    ("upsample_trilinear", 3), ("_upsample_smooth_bilinear", 2), ("_upsample_smooth_bicubic", 2),
    ("_upsample_smooth_lanczos", 2),
):  # fmt: skip
    rule(f"{_name}{_d}d")(_folding(_d + 2))
    rule(f"{_name.lstrip('_')}{_d}d_backward")(_folding(_d + 2, "grad_output"))
for _d in (2, 3):
    rule(f"_avg_pool{_d}d", f"_max_pool{_d}d", f"max_pool{_d}d_with_indices",
         f"_adaptive_avg_pool{_d}d", f"_adaptive_max_pool{_d}d")(_folding(_d + 2))  # fmt: skip
    rule(f"_avg_pool{_d}d_backward")(_folding(_d + 2, "grad_output", sizes="size"))
    rule(f"_adaptive_avg_pool{_d}d_backward")(_folding(_d + 2, "grad_output"))
rule("max_pool2d_with_indices_backward")(_folding(4, "grad_output", "self", "indices"))
rule("channel_shuffle")(lambda c: fold(c, ["self"], c.rank("self")))
rule("im2col")(_folding(4))
rule("col2im")(_folding(3))
for _d in (2, 3):
    rule(f"grid_sampler_{_d}d")(lambda c, d=_d: fold(c, ["input", "grid"], d + 2))
    rule(f"grid_sampler_{_d}d_backward")(
        lambda c, d=_d: fold(c, ["grad_output", "input", "grid"], d + 2)
    )


def _planes(*tensors: str, sizes: str | None = None) -> Any:
    """Pooling whose number of dimensions the window's tells."""

    def body(c: Call) -> Any:
        window = c.raw("kernel_size") if "kernel_size" in c.names else None
        rank = len(window) + 2 if window is not None else c.rank(tensors[0])
        return fold(c, list(tensors), rank, sizes)

    return body


rule("_max_pool_indices")(_planes("self", "result"))
rule("_max_pool_backward")(_planes("grad_output", "self", "result"))


@rule("max_unpool", "_max_pool_gather")
def unpool(c: Call) -> Any:
    return fold(c, ["self", "indices"], len(c.raw("size")) + 2)


@rule("_max_unpool")
def unpool_backward(c: Call) -> Any:
    return fold(c, ["grad_output", "indices"], len(c.raw("size")) + 2)


@rule("affine_grid_generator_backward")
def affine_grid_backward(c: Call) -> Any:
    return fold(c, ["grad"], len(c.raw("size")), "size")


@rule("affine_grid_generator")
def affine_grid(c: Call) -> Any:
    return fold(c, ["theta"], 3, "size")


# ---- convolution ---------------------------------------------------------------------------------


def _channels(x: Any) -> Any:
    """(batch, N, C, …) as (N, batch · C, …)."""
    return aten.flatten(aten.movedim(x, 0, 1), 1, 2)


def _unchannels(r: Any, n: int) -> Any:
    """(N, batch · C, …) as (batch, N, C, …)."""
    return aten.movedim(aten.unflatten(r, 1, (n, -1)), 1, 0)


@rule("convolution")
def convolution(c: Call) -> Any:
    """With weights of their own, the elements are groups of channels; else one larger batch."""
    spatial = c.rank("weight") - 2
    if c.rank("input") != spatial + 2 or 0 in (c.n, *c.shape("input"), *c.shape("weight")):
        return c.loop()
    if c.has("bias"):
        bias = aten.view(c.raw("bias"), (-1, *(1,) * spatial))
        plain = [None if n == "bias" else c.args[i] for n, i in c.names.items()]
        return aten.add(c.op.core(*plain), bias)
    if not c.has("weight"):
        return fold(c, ["input"], spatial + 2)
    x, w = c.full("input"), c.full("weight")
    bias = c.raw("bias")
    made = c.call(
        input=_channels(x),
        weight=aten.flatten(w, 0, 1),
        bias=None if bias is None else aten.repeat(bias, (c.n,)),
        groups=c.raw("groups") * c.n,
    )
    return c.wrap(_unchannels(made, c.n))


@rule("_convolution_input_grad")
def convolution_input_grad(c: Call) -> Any:
    size = tuple(c.raw("input_size"))
    if 0 in (c.n, *size, *c.shape("weight"), *c.shape("grad_output")):
        return c.loop()
    if not c.has("weight"):
        return fold(c, ["grad_output"], c.rank("weight"), "input_size")
    made = c.call(
        grad_output=_channels(c.full("grad_output")),
        weight=aten.flatten(c.full("weight"), 0, 1),
        input_size=(size[0], c.n * size[1], *size[2:]),
        groups=c.raw("groups") * c.n,
    )
    return c.wrap(_unchannels(made, c.n))


@rule("_convolution_weight_grad")
def convolution_weight_grad(c: Call) -> Any:
    size = tuple(c.raw("weight_size"))
    if 0 in (c.n, *size, *c.shape("input"), *c.shape("grad_output")):
        return c.loop()
    made = c.call(
        grad_output=_channels(c.full("grad_output")),
        input=_channels(c.full("input")),
        weight_size=(c.n * size[0], *size[1:]),
        groups=c.raw("groups") * c.n,
    )
    return c.wrap(aten.unflatten(made, 0, (c.n, size[0])))


# ---- normalization -------------------------------------------------------------------------------


def _many(x: Any, c: Call, name: str) -> Any:
    """A vector for each channel, as one for all channels of all elements; None stays."""
    return None if x is None else aten.flatten(c.full(name), 0, 1)


def _per_channel(c: Call, tensors: tuple[str, ...], vectors: tuple[str, ...], **more: Any) -> Any:
    """Statistics of channels: those of all elements side by side."""
    if 0 in (c.n, *c.shape(tensors[0])):
        return c.loop()
    changed: dict[str, Any] = {n: _channels(c.full(n)) for n in tensors}
    changed |= {n: _many(c.raw(n), c, n) for n in vectors}
    made = c.call(**changed, **more)

    def back(r: Any) -> Any:
        if len(r._a.shape) == 1:
            return aten.unflatten(r, 0, (c.n, -1))
        return _unchannels(r, c.n)

    return c.wrap(mapped(back, made))


@rule("_batch_norm_training")
def batch_norm_training(c: Call) -> Any:
    if not c.has("input"):  # the statistics are the same for all
        made = c.op.core(c.raw("input"), None, None, c.raw("eps"))
        return (_scaled(c, made[0]), *made[1:])
    return _per_channel(c, ("input",), ("weight", "bias"))


def _scaled(c: Call, x: Any) -> Any:
    """Times the weight of each channel, plus its bias."""
    for n, combine in (("weight", aten.mul), ("bias", aten.add)):
        v = c.raw(n)
        if v is not None:
            x = combine(x, aten.view(v, (-1, *(1,) * (len(x._a.shape) - 2))))
    return x


@rule("_batch_norm_eval")
def batch_norm_eval(c: Call) -> Any:
    return _per_channel(c, ("input",), ("weight", "bias", "running_mean", "running_var"))


@rule("_batch_norm_backward")
def batch_norm_backward(c: Call) -> Any:
    return _per_channel(c, ("grad_out", "input"), ("mean", "rstd", "weight"))


@rule("native_group_norm")
def group_norm(c: Call) -> Any:
    return _per_channel(
        c, ("input",), ("weight", "bias"), C=c.raw("C") * c.n, group=c.raw("group") * c.n
    )


@rule("native_group_norm_backward")
def group_norm_backward(c: Call) -> Any:
    if 0 in (c.n, *c.shape("input")):
        return c.loop()
    return _per_channel_stats(c)


def _per_channel_stats(c: Call) -> Any:
    """Mean and deviation are (N, groups): their groups lie side by side, too."""
    changed: dict[str, Any] = {n: _channels(c.full(n)) for n in ("grad_out", "input")}
    changed |= {n: _channels(c.full(n)) for n in ("mean", "rstd")}
    changed["weight"] = _many(c.raw("weight"), c, "weight")
    made = c.call(**changed, group=c.raw("group") * c.n)
    return c.wrap(mapped(
        lambda r: aten.unflatten(r, 0, (c.n, -1)) if len(r._a.shape) == 1 else _unchannels(r, c.n),
        made,
    ))  # fmt: skip


@rule("native_layer_norm")
def layer_norm(c: Call) -> Any:
    """Any dimensions may come before the normalized ones; weights of their own come after."""
    if not (c.has("weight") or c.has("bias")):
        return c.run(input=c.front("input"))
    made = c.op.core(c.raw("input"), c.raw("normalized_shape"), None, None, c.raw("eps"))
    out = made[0]
    if c.raw("weight") is not None:
        out = aten.mul(out, c.raw("weight"))
    if c.raw("bias") is not None:
        out = aten.add(out, c.raw("bias"))
    return (out, made[1], made[2])


@rule("native_layer_norm_backward")
def layer_norm_backward(c: Call) -> Any:
    """The gradients of weights are sums over what is not normalized, for each element."""
    mask = c.raw("output_mask")
    g, x, weight = c.raw("grad_out"), c.raw("input"), c.raw("weight")
    outer = len(x._a.shape) - len(c.raw("normalized_shape"))
    none = aten.empty((0,), dtype=x._k.dtype)
    into = dw = db = none
    if mask[0]:
        scaled = g if weight is None else aten.mul(g, weight)
        inner = Call(
            c.op, (scaled, x, c.raw("normalized_shape"), c.raw("mean"), c.raw("rstd"), None,
                   (True, False, False)), c.level,
        )  # fmt: skip
        into = inner.wrap(inner.call(
            grad_out=inner.full("grad_out"), input=inner.full("input"),
            mean=inner.full("mean"), rstd=inner.full("rstd"),
        )[0])  # fmt: skip
    dims = tuple(range(outer))
    if mask[1]:
        normal = aten.mul(aten.sub(x, c.raw("mean")), c.raw("rstd"))
        dw = aten.mul(g, normal)
        dw = aten.sum(dw, dims) if dims else dw
    if mask[2]:
        db = aten.sum(g, dims) if dims else g
    return (into, dw, db)
