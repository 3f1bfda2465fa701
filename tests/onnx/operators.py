"""Calls of operators on `x` of shape (batch, 3, 4), whose batch may vary: `OPERATORS(torch)`."""

from __future__ import annotations

from typing import Any


def operators(torch: Any) -> dict[str, Any]:
    """Name → function of x."""
    F = torch.nn.functional
    long, ones, zeros = torch.long, torch.ones, torch.zeros
    unary = (
        "abs neg exp log1p sqrt rsqrt sin cos tan sinh cosh tanh asinh atan sigmoid erf erfc "
        "reciprocal sign ceil floor round trunc frac expm1 log2 log10 square exp2 isnan isinf "
        "isfinite relu"
    ).split()
    activations = (
        "silu mish hardswish hardsigmoid hardtanh relu6 leaky_relu elu selu celu softplus softsign "
        "gelu logsigmoid hardshrink softshrink tanhshrink glu"
    ).split()
    found: dict[str, Any] = {n: getattr(torch, n) for n in unary}
    found |= {n: getattr(F, n) for n in activations}
    found |= {
        "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
        "threshold": lambda x: F.threshold(x, 0.5, 2.0),
        "prelu": lambda x: F.prelu(x, ones(3)),
        "add": lambda x: torch.add(x, x.mean(0), alpha=2),
        "rsub": lambda x: 1 - x,
        "mul int": lambda x: x.long() * 2.5,
        "div": lambda x: x / x.shape[0],
        "div floor": lambda x: torch.div(x - 1, 0.3, rounding_mode="floor"),
        "div trunc": lambda x: torch.div(x - 1, 0.3, rounding_mode="trunc"),
        "floor_divide": lambda x: (x * 9).long() // 2 - 1,
        "remainder": lambda x: (x - 0.5) % 0.4,
        "remainder int": lambda x: ((x * 9).long() - 4) % 3,
        "fmod": lambda x: torch.fmod(x - 0.5, 0.4),
        "pow": lambda x: (x**2, x**0.5, 2**x, x**3),
        "maximum": lambda x: torch.maximum(x, x.mean(1, keepdim=True)),
        "compare": lambda x: (x > 0.5, x <= 0.5, x == x, x != 0.5, x.long() < 0.5, x >= 1),
        "logic": lambda x: (
            (x > 0.2) & (x < 0.8),
            (x > 0.2) | (x < 0.1),
            ~(x > 0.5),
            (x > 1) ^ (x < 2),
        ),
        "logical": lambda x: (torch.logical_and(x, x), torch.logical_not(x)),
        "bitwise": lambda x: (x * 9).int() & 3,
        "where": lambda x: torch.where(x > 0.5, x, 0.0),
        "masked_fill": lambda x: x.masked_fill(x > 0.5, float("-inf")),
        "clamp": lambda x: (
            x.clamp(0.2, 0.7),
            x.clamp(min=0.5),
            x.clamp(max=0.5),
            x.clamp_min(0.1),
        ),
        "lerp": lambda x: x.lerp(x + 1, 0.3),
        "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
        "addcdiv": lambda x: torch.addcdiv(x, x, x + 1),
        "nan_to_num": lambda x: torch.nan_to_num(x / 0.0),
        "casts": lambda x: (x.double(), x.long(), x.bool(), x.half().float(), x.type_as(x)),
        "view": lambda x: (x.view(x.shape[0] * 3, 4), x.view(-1, 4), x.view(x.shape[0], 2, 6)),
        "reshape": lambda x: (
            x.reshape(x.shape[0], -1),
            x.reshape(-1),
            x.transpose(0, 1).reshape(3, -1),
        ),
        "flatten": lambda x: (x.flatten(1), x.flatten(0, 1), x.flatten()),
        "unflatten": lambda x: x.unflatten(2, (2, 2)),
        "squeeze": lambda x: (
            x[:, :1].squeeze(1),
            x[:, :1, :1].squeeze(),
            x.unsqueeze(0).unsqueeze(-1),
        ),
        "permute": lambda x: (
            x.permute(2, 0, 1),
            x.transpose(0, 1),
            x.mT,
            x[:, 0].T,
            x.movedim(0, -1),
        ),
        "expand": lambda x: (ones(1, 3, 4).expand(x.shape[0], -1, -1), ones(4).expand_as(x)),
        "broadcast_to": lambda x: torch.broadcast_to(ones(4), x.shape),
        "repeat": lambda x: (x.repeat(2, 1, 1), ones(1, 2).repeat(x.shape[0], 1), x.tile(2)),
        "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
        "slice": lambda x: (x[1:], x[:-1], x[::2], x[:, 1:3], x[: x.shape[0] // 2], x[..., -2:]),
        "select": lambda x: (x[0], x[-1], x[:, 1], x[x.shape[0] - 1], x[..., None, 0]),
        "narrow": lambda x: (x.narrow(1, 1, 2), x.narrow(0, 0, x.shape[0] - 1)),
        "cat": lambda x: (
            torch.cat([x, x]),
            torch.cat([x, zeros(2, 3, 4)]),
            torch.cat([x, x.long()], 1),
        ),
        "stack": lambda x: (torch.stack([x, x]), torch.stack([x, x], -1), torch.hstack([x, x])),
        "split": lambda x: (*x.split(2, 1), *x.chunk(2, 2), *x.split([1, 3], 2)),
        "unbind": lambda x: x.unbind(1),
        "flip": lambda x: (x.flip(0), x.flip(1, 2)),
        "roll": lambda x: (x.roll(1, 0), x.roll((1, -1), (1, 2)), x.roll(2)),
        "pad": lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 0, 0, 0, 1, 1), value=3.0)),
        "pad modes": lambda x: (
            F.pad(x, (1, 1), mode="reflect"),
            F.pad(x, (1, 2), mode="replicate"),
        ),
        "triangles": lambda x: (x.tril(), x.triu(1), ones(x.shape[0], x.shape[0]).tril(-1)),
        "unfold": lambda x: x.unfold(2, 2, 1),
        "sum": lambda x: (
            x.sum(),
            x.sum(1),
            x.sum((0, 2), keepdim=True),
            x.long().sum(),
            (x > 0.5).sum(1),
        ),
        "mean": lambda x: (x.mean(), x.mean(0), x.mean((0, 2)), x.mean(-1, keepdim=True)),
        "extremes": lambda x: (
            x.max(),
            *x.max(1),
            x.amax(-1),
            x.amin((1, 2)),
            *x.min(2, keepdim=True),
        ),
        "args": lambda x: (x.argmax(1), x.argmin(-1, keepdim=True), x.argmax()),
        "aminmax": lambda x: tuple(torch.aminmax(x, dim=1)),
        "any all": lambda x: ((x > 0.5).any(1), (x > 0).all(), x.bool().any()),
        "prod": lambda x: x.prod(1),
        "logsumexp": lambda x: x.logsumexp(1),
        "spread": lambda x: (x.var(1), x.std(), x.var((0, 2), correction=0), *torch.var_mean(x, 1)),
        "norms": lambda x: (
            x.norm(dim=1),
            x.norm(1, dim=1),
            F.normalize(x, dim=-1),
            x.norm(3, dim=2),
        ),
        "cumsum": lambda x: x.cumsum(0),
        "topk": lambda x: tuple(x.topk(2, 1)),
        "sort": lambda x: (*x.sort(2), x.argsort(1, descending=True)),
        "softmax": lambda x: (
            x.softmax(0),
            F.log_softmax(x, -1),
            F.softmax(x.long(), 1, dtype=x.dtype),
        ),
        "matmul": lambda x: (x @ ones(4, 5), x @ ones(4), x[:, 0] @ ones(4, 2), torch.bmm(x, x.mT)),
        "linear": lambda x: (F.linear(x, ones(5, 4), ones(5)), F.linear(x[:, 0], ones(5, 4))),
        "addmm": lambda x: torch.addmm(ones(5), x[:, 0], ones(4, 5), beta=2, alpha=0.5),
        "baddbmm": lambda x: torch.baddbmm(ones(3, 3), x, x.mT, beta=0.5, alpha=2),
        "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
        "outer": lambda x: (torch.outer(x[:, 0, 0], x[:, 0, 0]), torch.tensordot(x, ones(4, 2), 1)),
        "attention": lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None]),
        "causal": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.3),
        "masked": lambda x: F.scaled_dot_product_attention(
            x, x, x, ones(3, 3, dtype=torch.bool).tril()
        ),
        "conv1d": lambda x: F.conv1d(x, ones(5, 3, 3), ones(5), padding=1, stride=2),
        "conv2d": lambda x: F.conv2d(x[:, :, None], ones(6, 1, 1, 2), groups=3, dilation=(1, 2)),
        "conv_transpose": lambda x: F.conv_transpose1d(
            x, ones(3, 5, 3), stride=2, output_padding=1
        ),
        "max_pool": lambda x: (F.max_pool1d(x, 2), F.max_pool2d(x[:, None], (2, 2), 1, 1)),
        "avg_pool": lambda x: (
            F.avg_pool1d(x, 2, 1, 1),
            F.avg_pool2d(x, 2, count_include_pad=False),
        ),
        "pool of all": lambda x: F.avg_pool1d(x.permute(1, 2, 0), x.shape[0]),
        "adaptive": lambda x: (
            F.adaptive_avg_pool1d(x, 1),
            F.adaptive_avg_pool1d(x, 2),
            F.adaptive_max_pool1d(x, 1),
        ),
        "interpolate": lambda x: (
            F.interpolate(x, scale_factor=2.0),
            F.interpolate(x, size=8, mode="linear"),
        ),
        "interpolate 2d": lambda x: F.interpolate(
            x[:, None], size=(5, 7), mode="bilinear", align_corners=True
        ),
        "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(-1, 4, 3, 1), 2),
        "batch_norm": lambda x: F.batch_norm(x, zeros(3) + 0.2, ones(3) * 2, eps=0.1),
        "instance_norm": lambda x: F.instance_norm(x.reshape(-1, 3, 2, 2), eps=0.1),
        "group_norm": lambda x: F.group_norm(x.reshape(-1, 6, 2), 3, ones(6), ones(6)),
        "layer_norm": lambda x: (
            F.layer_norm(x, (4,)),
            F.layer_norm(x, (3, 4), ones(3, 4), ones(3, 4)),
        ),
        "rms_norm": lambda x: F.rms_norm(x, (4,), ones(4), 0.1),
        "gather": lambda x: x.gather(1, zeros(x.shape[0], 1, 4, dtype=long)),
        "take_along": lambda x: torch.take_along_dim(x, x.argsort(1), 1),
        "index_select": lambda x: x.index_select(1, torch.tensor([0, 2])),
        "index": lambda x: (
            x[:, torch.tensor([0, -1])],
            x[torch.arange(x.shape[0]), zeros(x.shape[0], dtype=long)],
        ),
        "index inside": lambda x: x[:, torch.tensor([[0, 1], [2, 0]]), torch.tensor([1, 3])],
        "embedding": lambda x: F.embedding(
            (x * 3).long().clamp(0, 9), torch.arange(70.0).view(10, 7)
        ),
        "one_hot": lambda x: F.one_hot((x * 3).long().clamp(0, 4), 5),
        "scatter": lambda x: (x.scatter(1, zeros(x.shape[0], 1, 4, dtype=long), 9.0),),
        "scatter_add": lambda x: zeros(10, 4).scatter_add(
            0, (x[:, 0] * 3).long().clamp(0, 9), x[:, 0]
        ),
        "index_add": lambda x: zeros(10, 4).index_add(
            0, (x[:, 0, 0] * 3).long().clamp(0, 9), x[:, 0]
        ),
        "makers": lambda x: (
            zeros(x.shape[0], 2),
            torch.full((x.shape[0], 2), 7),
            torch.ones_like(x),
            x.new_zeros(2),
        ),
        "arange": lambda x: (
            torch.arange(x.shape[0]),
            torch.arange(1, 7, 2),
            torch.arange(x.shape[0] * 2.0),
        ),
        "linspace": lambda x: (torch.linspace(0, 1, x.shape[0]), torch.linspace(0, 1, 5)),
        "eye": lambda x: (torch.eye(x.shape[0]), torch.eye(3)),
        "meshgrid": lambda x: torch.meshgrid(
            torch.arange(x.shape[0]), torch.arange(3), indexing="ij"
        ),
        "sizes": lambda x: (
            x.shape[0] * 3 - 1,
            x.numel() // 5,
            x * (x.shape[0] / 7),
            x.shape[0] % 3,
        ),
        "losses": lambda x: (
            F.mse_loss(x, x + 1),
            F.l1_loss(x, x * 2, reduction="sum"),
            F.binary_cross_entropy_with_logits(x, x),
        ),
        "cross_entropy": lambda x: F.cross_entropy(x[:, 0], (x[:, 0, 0] * 2).long().clamp(0, 3)),
        "cdist": lambda x: torch.cdist(x, x),
        "logaddexp": lambda x: torch.logaddexp(x, x.log()),
        "atan2": lambda x: (torch.atan2(x - 0.5, 0.3 - x), torch.hypot(x, x), torch.xlogy(x, x)),
        "signs": lambda x: (torch.copysign(x, x - 0.5), torch.heaviside(x - 0.5, x), torch.sinc(x)),
        "nan": lambda x: (
            torch.fmax(x, x / 0 * 0),
            torch.nansum(x / 0 * 0, 1),
            torch.logit(x, 0.1),
        ),
        "count_nonzero": lambda x: (
            torch.count_nonzero(x > 0.5, 1),
            torch.addbmm(ones(3, 3), x, x.mT),
        ),
        "diagonal": lambda x: (x.diagonal(0, 1, 2), x.diagonal(1, 2, 1), x[0, :, :3].trace()),
        "channel_shuffle": lambda x: F.channel_shuffle(x.reshape(-1, 6, 2), 3),
        "adaptive 5 of 4": lambda x: (
            F.adaptive_avg_pool1d(x, 3),
            F.adaptive_avg_pool2d(x, (2, 3)),
        ),
        "resized as it is": lambda x: F.interpolate(x[:, None], scale_factor=(2, 1.5)),
        "grid_sample": lambda x: F.grid_sample(
            x[:, None], x[:, :2, :4].reshape(-1, 2, 2, 2), align_corners=False
        ),
        "more losses": lambda x: (
            F.smooth_l1_loss(x, x * 3, beta=0.7),
            F.huber_loss(x, x * 3, delta=0.7),
            F.binary_cross_entropy(x, x, reduction="none"),
            F.nll_loss(x[:, 0], (x[:, 0, 0] * 2).long(), ones(4) * 2, ignore_index=0),
        ),
        "constant": lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "in place": lambda x: x.clone().add_(1).mul_(2),
    }

    def set_items(x):
        y = x.clone()
        y[:, 0] = 1.0
        y[:, 1:, ::2] += 2
        y[0] = y[-1]
        y[:, :, 3][x[:, :, 3] > 0.5] = 0
        return y

    found["writes"] = set_items
    return found
