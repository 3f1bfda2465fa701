"""Losses that are a likelihood or a divergence, Huber's loss and the CTC loss.

reduction: "mean", "sum" or "none". Source:
https://docs.pytorch.org/docs/2.13/nn.html#loss-functions
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.loss import NLLLoss, _Loss


class KLDivLoss(_Loss):
    """target·(log target - input); input are log-probabilities, and target, too, if log_target.

    reduction="batchmean" divides the sum by the number of samples: the divergence itself.
    """

    __constants__ = ["reduction"]

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class HuberLoss(_Loss):
    """(input - target)² / 2 where the difference is below delta, else delta·(|difference| -
    delta / 2)."""

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class GaussianNLLLoss(_Loss):
    """-log of the normal density of target with mean input and variance var, which counts as at
    least eps; full: with the constant log(2π) / 2."""

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class PoissonNLLLoss(_Loss):
    """exp(input) - target·input, or input - target·log(input + eps) without log_input; full: with
    Stirling's formula for log(target!)."""

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: Any = None,
        eps: float = 1e-8, reduce: Any = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """-log of the probability of a label sequence under all its alignments.

    log_probs: (T, N, C) or (T, C); targets (N, S) or one after the other; blank: the class that
    stands for no label; zero_infinity: targets longer than their input count as zero.
    Source: https://www.cs.toronto.edu/~graves/icml_2006.pdf
    """

    __constants__ = ["blank", "reduction"]

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss for (N, C, H, W)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


__all__ = ["CTCLoss", "GaussianNLLLoss", "HuberLoss", "KLDivLoss", "NLLLoss2d", "PoissonNLLLoss"]
