"""One layer of a long short-term memory in one direction, by oneDNN: `backends.onednn_lstm`.

PyTorch's processor kernel is the same library's, and its node has the same name.

Note: where a compiled graph runs
    The operator is chosen where oneDNN may run. A graph that keeps it may run in a forked child, or
    after oneDNN was switched off: there the operator without oneDNN computes, and leaves what its
    backward needs in the workspace, whose last byte tells who wrote it.
Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.LSTM.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends import onednn_lstm
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import OPS, vjp_helper
from torchlab._core.ops import _recurrent as shared

_BYTES = np.dtype(np.uint8)
_ONEDNN, _NUMPY = 0, 1


def _meta(
    x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, backwards: bool, keep: bool
) -> Any:
    y = (*x.shape[:2], h.shape[1])
    space = _room(x, h.shape[1], backwards) if keep else 0
    made = [MetaArray(s, x.dtype) for s in (y, h.shape, c.shape)]
    return (*made, MetaArray((space,), _BYTES), MetaArray(y if keep else (0,), x.dtype))


def _room(x: Any, hidden: int, backwards: bool) -> int:
    """Bytes of the workspace, for either writer."""
    saved = 6 * x.shape[0] * x.shape[1] * hidden * x.dtype.itemsize
    return max(onednn_lstm.workspace(x, hidden, backwards), saved) + 1


@op(
    "_lstm_line_onednn(Tensor input, Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
    "Tensor? b_hh, bool reverse, bool keep) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_meta,
    grad_name="MkldnnRnnLayerBackward0",
    vjp={
        "input, hx, cx, w_ih, w_hh, b_ih, b_hh": (
            "lstm_line_onednn_backward(g0, g1, g2, input, hx, cx, w_ih, w_hh, b_ih, b_hh, result1, "
            "result2, result3, result4, reverse, needs)"
        )
    },
)
def lstm_line_onednn(
    xp: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, backwards: bool,
    keep: bool,
) -> Any:  # fmt: skip
    """(T, N, in) → the outputs, the last h and c; and with `keep` what backward needs: oneDNN's
    workspace, and the outputs once more, for the user may write to the others."""
    room = _room(x, w_hh.shape[1], backwards) if keep else 0
    given = (x, h, c, w_ih, w_hh, b_ih, b_hh)
    if onednn_lstm.fits(x):
        y, last_h, last_c, space = onednn_lstm.forward(*given, backwards, keep, room)
        writer = _ONEDNN
    else:
        kernel = OPS["_lstm_line"]["default"].kernel
        y, last_h, last_c, *saved = kernel(xp, *given, None, (), backwards, keep)
        space = np.empty(room, np.uint8)
        writer = _NUMPY
        if keep:
            for target, source in zip(_saved(space, *saved[1].shape), saved, strict=True):
                target[...] = source
    if keep:
        space[-1] = writer
    return y, last_h, last_c, space, y.copy() if keep else np.empty(0, y.dtype)


def _saved(space: Any, total: int, hidden: int) -> tuple[Any, Any]:
    """Where NumPy's writer puts the gates and the cells."""
    rows = space[: 6 * total * hidden * 4].view(np.float32).reshape(-1, hidden)
    return rows[: 5 * total], rows[5 * total :]


@vjp_helper
def lstm_line_onednn_backward(
    g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
    last_h: Any, last_c: Any, space: Any, y: Any, backwards: bool, needs: Any,
) -> Any:  # fmt: skip
    """The gradients that are needed."""
    if g is None and gh is None and gc is None:
        return (None,) * 7
    if shared.differentiated_again():
        args = (x, h, c, w_ih, w_hh, b_ih, b_hh, None)
        found = shared.again("lstm", (g, gh, gc), args, (), backwards, (*needs, False))
        return found[:7]
    found = _lstm_line_onednn_backward.call(
        g, gh, gc, x, h, c, w_ih, w_hh, y, last_h, last_c, space, backwards
    )
    both = (*found, found[5].clone() if needs[5] and needs[6] else found[5])
    return tuple(v if n else None for v, n in zip(both, needs, strict=True))


def _backward_meta(
    g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, *rest: Any
) -> Any:
    shapes = (x.shape, h.shape, c.shape, w_ih.shape, w_hh.shape, w_ih.shape[:1])
    return tuple(MetaArray(s, x.dtype) for s in shapes)


@op(
    "_lstm_line_onednn_backward(Tensor? grad_output, Tensor? grad_hx, Tensor? grad_cx, Tensor "
    "input, Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor output, Tensor hy, Tensor cy, "
    "Tensor workspace, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_backward_meta,
)
def _lstm_line_onednn_backward(
    xp: Any, g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, y: Any,
    last_h: Any, last_c: Any, space: Any, backwards: bool,
) -> Any:  # fmt: skip
    """The gradients of input, hx, cx, w_ih, w_hh and either bias."""
    given = (g, gh, gc, x, h, c, w_ih, w_hh)
    if space[-1] == _ONEDNN:
        return onednn_lstm.backward(*given, y, last_h, last_c, space, backwards)
    saved = _saved(space, x.shape[0] * x.shape[1], w_hh.shape[1])
    kernel = OPS["_lstm_line_backward"]["default"].kernel
    return kernel(xp, *given, None, *saved, (), backwards, (True,) * 6 + (False, False))[:6]
