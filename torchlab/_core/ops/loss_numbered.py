"""Losses as `torchlab` itself has them: the reduction is a number (0 none, 1 mean, 2 sum), and none
by default, as PyTorch's.

`torchlab.nn.functional` has the same losses with the reduction's name and more options.
Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#loss-functions
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import composite
from torchlab._core.dispatch.registry import SPACE_FACES


def _declare(schema: str, positional: int, *named: str) -> None:
    """The function of this schema: its first arguments by position, the others by name, are what
    nn.functional's takes."""
    name = schema[: schema.index("(")]

    def loss(*args: Any) -> Any:
        body = SPACE_FACES["nn.functional", name].body
        return body(*args[:positional], **dict(zip(named, args[positional:], strict=True)))

    loss.__doc__ = f"`nn.functional.{name}` with the reduction as a number."
    composite(schema, method=False, autocast="float32")(loss)


_declare(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=0) -> Tensor",
    3,
    "reduction",
)
_declare(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
    "reduction=0) -> Tensor",
    4,
    "reduction",
)
_declare(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float "
    "p=2, float eps=1e-06, bool swap=False, int reduction=0) -> Tensor",
    7,
    "reduction",
)
_declare(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
    "reduction=0) -> Tensor",
    4,
    "reduction",
)
_declare(
    "kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor",
    2,
    "reduction",
    "log_target",
)
_declare(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
    "reduction) -> Tensor",
    4,
    "eps",
    "reduction",
)
