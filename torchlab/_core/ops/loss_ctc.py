"""Connectionist temporal classification: Graves and others, ICML 2006.

Note: forward and backward variables
    The labels l₁ … l_S are interleaved with blanks: L = 2 S + 1 states. α[t, s] is the logarithm of
    the probability of all paths that are in state s at time t, β the same for the paths from t to
    the end. Both are recursions over time; all samples and states go at once. With them, the
    probability that a path is in state s at time t is exp(α + β − log p − log P), and the gradient
    of a normalized log p[t, c] is p[t, c] minus the sum of that over the states with label c.
Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.ctc_loss.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.factories import transformed
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops.kernels import MEAN, SUM, np

# ---- arguments ----------------------------------------------------------------------------------


def _lengths(what: str, lengths: Any, batch: int) -> list[int]:
    """Lengths as numbers, checked."""
    if len(lengths) != batch:
        raise RuntimeError(
            f"ctc_loss: {what} must be of size batch_size, that is {batch}, got {len(lengths)}"
        )
    r = [int(n) for n in lengths]
    for i, n in enumerate(r):
        if n < 0:
            raise RuntimeError(f"ctc_loss: Expected {what} to be at least 0, but got {n} at {i}")
    return r


def _check(log_probs: Any, targets: Any, inputs: list[int], labels: list[int], blank: int) -> None:
    time, _, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(
            f"ctc_loss: blank must be in label range 0 … {classes - 1}, but is {blank}"
        )
    if targets.dtype.kind not in "iu" or targets.dtype.itemsize < 4:
        raise RuntimeError(
            f"ctc_loss: targets must be of type Int or Long, but are {targets.dtype.name}"
        )
    for i, n in enumerate(inputs):
        if n > time:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {time}, but got value {n} "
                f"(while checking arguments for ctc_loss, sample {i})"
            )
    if targets.ndim == 1:
        if targets.shape[0] != sum(labels):
            raise RuntimeError(
                f"Expected tensor to have size {sum(labels)} at dimension 0, but got size "
                f"{targets.shape[0]} for argument #2 'targets' (while checking arguments for "
                "ctc_loss)"
            )
    elif targets.shape[0] != len(labels) or targets.shape[1] < max(labels, default=0):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(labels, default=0)} at dimension 1, but "
            f"got size {list(targets.shape)} for argument #2 'targets' (while checking arguments "
            "for ctc_loss)"
        )


def _states(xp: Any, targets: Any, labels: list[int], blank: int) -> Any:
    """The label of each state, (N, L); behind a sample's own states stand blanks."""
    batch, most = len(labels), max(labels, default=0)
    padded = xp.full((batch, most), blank, xp.int64)
    valid = xp.arange(most)[None, :] < xp.asarray(labels, xp.int64).reshape(-1, 1)
    if targets.ndim == 1:
        padded[valid] = targets
    else:
        padded = xp.where(valid, targets[:, :most], blank).astype(xp.int64)
    states = xp.full((batch, 2 * most + 1), blank, xp.int64)
    states[:, 1::2] = padded
    return states


def _skips(xp: Any, states: Any) -> Any:
    """Where a path may come from two states before: at labels unlike the last one."""
    r = xp.zeros(states.shape, bool)
    r[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    return r


def _log_sum(xp: Any, terms: list[Any]) -> Any:
    top = terms[0]
    for t in terms[1:]:
        top = xp.maximum(top, t)
    base = xp.where(xp.isneginf(top), top.dtype.type(0), top)
    total = xp.exp(terms[0] - base)
    for t in terms[1:]:
        total += xp.exp(t - base)
    with xp.errstate(divide="ignore"):
        return xp.log(total) + base


def _later(xp: Any, a: Any, by: int) -> Any:
    """Shifted towards higher states, −∞ coming in."""
    r = xp.full_like(a, -xp.inf)
    if by < a.shape[1]:
        r[:, by:] = a[:, :-by]
    return r


# ---- kernels ------------------------------------------------------------------------------------


def _emissions(xp: Any, log_probs: Any, states: Any) -> Any:
    """log p of each state at each time: (T, N, L)."""
    index = xp.broadcast_to(states, (log_probs.shape[0], *states.shape))
    return xp.take_along_axis(log_probs, index, axis=2)


def _forward(xp: Any, emit: Any, skip: Any, labels: Any) -> Any:
    """α, (T, N, L)."""
    alpha = xp.full(emit.shape, -xp.inf, emit.dtype)
    if not emit.shape[0]:
        return alpha
    alpha[0, :, 0] = emit[0, :, 0]
    if emit.shape[2] > 1:
        alpha[0, :, 1] = xp.where(labels > 0, emit[0, :, 1], -xp.inf)
    low = emit.dtype.type(-xp.inf)
    for t in range(1, emit.shape[0]):
        before = alpha[t - 1]
        two = xp.where(skip, _later(xp, before, 2), low)
        alpha[t] = _log_sum(xp, [before, _later(xp, before, 1), two]) + emit[t]
    return alpha


def _backward(xp: Any, emit: Any, skip: Any, inputs: Any, labels: Any) -> Any:
    """β, (T, N, L): −∞ behind a sample's end."""
    time, batch, n = emit.shape
    beta = xp.full(emit.shape, -xp.inf, emit.dtype)
    state = xp.arange(n)[None, :]
    last = 2 * labels[:, None]
    final = (state == last) | ((state == last - 1) & (last > 0))
    low = emit.dtype.type(-xp.inf)
    after = beta[0]
    for t in range(time - 1, -1, -1):
        stay = after
        one = _later(xp, after[:, ::-1], 1)[:, ::-1]
        two = _later(xp, xp.where(skip, after, low)[:, ::-1], 2)[:, ::-1]
        inner = _log_sum(xp, [stay, one, two]) + emit[t]
        end = xp.where(final, emit[t], low)
        at_end, running = (inputs == t + 1)[:, None], (inputs > t + 1)[:, None]
        after = beta[t] = xp.where(at_end, end, xp.where(running, inner, low))
    return beta


def _loss_meta(log_probs: Any, targets: Any, inputs: Any, labels: Any, *rest: Any) -> Any:
    time, batch, _ = log_probs.shape
    return (
        MetaArray((batch,), log_probs.dtype),
        MetaArray((batch, time, 2 * max(labels, default=0) + 1), log_probs.dtype),
    )


@op(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
    "blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
    method=False,
    meta=_loss_meta,
    grad_name="CtcLossBackward0",
    vjp={
        "log_probs": (
            "_ctc_loss_backward(g0, log_probs, targets, input_lengths, target_lengths, result0, "
            "result1, blank, zero_infinity)"
        )
    },
)
def _ctc_loss(
    xp: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> Any:
    """−log P of the labels for each sample, and α (N, T, L): log_probs (T, N, C), targets (N, S) or
    one after the other (total)."""
    batch = log_probs.shape[1]
    inputs = _lengths("input_lengths", input_lengths, batch)
    labels = _lengths("target_lengths", target_lengths, batch)
    _check(log_probs, targets, inputs, labels, blank)
    states = _states(xp, targets, labels, blank)
    counts = xp.asarray(labels, xp.int64)
    emit = _emissions(xp, log_probs, states)
    alpha = _forward(xp, emit, _skips(xp, states), counts)
    ends = xp.asarray(inputs, xp.int64)
    rows = xp.arange(batch)
    if log_probs.shape[0]:
        final = alpha[xp.maximum(ends - 1, 0), rows]
        a = final[rows, 2 * counts]
        b = xp.where(counts > 0, final[rows, xp.maximum(2 * counts - 1, 0)], -xp.inf)
        loss = -_log_sum(xp, [a, b.astype(a.dtype)])
    else:
        loss = xp.zeros(batch, log_probs.dtype)
    nothing = ends == 0  # no time: certain for no labels, impossible for any
    loss = xp.where(nothing, xp.where(counts > 0, xp.inf, 0.0), loss).astype(log_probs.dtype)
    return loss, xp.ascontiguousarray(alpha.transpose(1, 0, 2))


@op(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
    "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool "
    "zero_infinity=False) -> Tensor",
    public=False,
    meta=lambda g, log_probs, *rest: MetaArray(log_probs.shape, log_probs.dtype),
    vjp={"grad, log_probs, neg_log_likelihood, log_alpha": ("ctc_loss_double_backward(g, needs)")},
)
def _ctc_loss_backward(
    xp: Any,
    g: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    loss: Any,
    log_alpha: Any,
    blank: int,
    zero_infinity: bool,
) -> Any:
    """The gradient of log_probs: p minus the posterior of each label; NaN for impossible labels,
    unless zero_infinity."""
    states = _states(xp, targets, list(target_lengths), blank)
    counts = xp.asarray(list(target_lengths), xp.int64)
    ends = xp.asarray(list(input_lengths), xp.int64)
    emit = _emissions(xp, log_probs, states)
    alpha = log_alpha.transpose(1, 0, 2)
    beta = _backward(xp, emit, _skips(xp, states), ends, counts)
    both = alpha + beta
    possible = xp.isfinite(both)
    zero = log_probs.dtype.type(0)
    with xp.errstate(invalid="ignore", over="ignore"):
        part = xp.where(possible, xp.exp(xp.where(possible, both - emit, zero) + loss[:, None]), 0)
        impossible = xp.isinf(loss)
        if zero_infinity:
            part = xp.where(impossible[:, None], 0, part)
    time, batch, classes = log_probs.shape
    row = xp.arange(time * batch).reshape(time, batch, 1) * classes + states
    posterior = xp.bincount(
        row.reshape(-1), weights=part.reshape(-1), minlength=log_probs.size
    ).reshape(log_probs.shape)
    r = (xp.exp(log_probs) - posterior.astype(log_probs.dtype)) * g[:, None]
    r = xp.where((impossible & (not zero_infinity))[:, None], log_probs.dtype.type(xp.nan), r)
    over = xp.arange(time)[:, None] >= ends
    silent = over | (impossible & zero_infinity)
    return xp.where(silent[:, :, None], zero, r)


@vjp_helper
def ctc_loss_double_backward(g: Any, needs: Any) -> Any:
    """Refuse, as PyTorch does: nobody has derived it."""
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


# ---- public -------------------------------------------------------------------------------------


def _numbers(lengths: Any) -> list[int]:
    if isinstance(lengths, (list, tuple)):
        return [int(n) for n in lengths]
    if lengths._k.dtype.is_floating_point or lengths._k.dtype.is_complex:
        raise RuntimeError("input_lengths and target_lengths must be integral")
    return [int(n) for n in aten.reshape(lengths, (-1,)).tolist()]


def _ctc(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Any:
    batched = log_probs._a.ndim == 3
    if log_probs._a.ndim not in (2, 3):
        raise RuntimeError(
            f"ctc_loss: log_probs must be (T, N, C) or (T, C), but is {list(log_probs._a.shape)}"
        )
    if log_probs._k.dtype.itemsize < 4 or not log_probs._k.dtype.is_floating_point:
        kind = log_probs._k.dtype.scalar_name
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{kind}'")
    if not batched:
        log_probs = aten.unsqueeze(log_probs, 1)
    inputs, labels = _numbers(input_lengths), _numbers(target_lengths)
    r = _ctc_loss.call(log_probs, targets, inputs, labels, blank, zero_infinity)[0]
    if zero_infinity:
        r = aten.where(r == np.inf, 0.0, r)
    if reduction == MEAN:
        sizes = aten.new_tensor(aten.detach(r), [max(n, 1) for n in labels])
        return aten.mean(r / sizes)
    if reduction == SUM:
        return aten.sum(r)
    return r if batched else aten.squeeze(r, 0)


_LENGTHS = ("input_lengths", "target_lengths")


@face("ctc_loss", method=False, spaces=("torch",), autocast="float32:cpu")
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Any:
    """The CTC loss; reduction as a number: 0 none, 1 mean, 2 sum."""
    if SLOW and (seen := transformed(ctc_loss.body, locals(), *_LENGTHS)) is not NotImplemented:
        return seen
    return _ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
