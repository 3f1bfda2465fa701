"""Losses that have weights of their own, for many classes.

Source: https://docs.pytorch.org/docs/2.13/nn.html#loss-functions
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn.containers import ModuleList, Sequential
from torchlab.nn.linear import Linear
from torchlab.nn.linear_cross_entropy_options import LinearCrossEntropyOptions
from torchlab.nn.loss import _WeightedLoss
from torchlab.nn.module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of linear(input), without keeping all the logits.

    input: (N, in_features); target: class numbers (N, *out_features) or probabilities; `linear`
    gives num_classes·∏ out_features numbers. options: how the batch is cut into chunks.
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        rows = num_classes
        for n in out_features:
            rows *= n
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
        weight, bias = self.linear.weight, self.linear.bias
        if self.out_features:
            shape = (self.num_classes, *self.out_features)
            weight = weight.view(*shape, weight.shape[-1])
            bias = None if bias is None else bias.view(*shape)
        return F.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes, sorted by how often they occur, in clusters: the first cutoffs[0]
    classes and one entry for each cluster of rarer ones are the head; every cluster has a tail with
    its own, div_value times narrower projection. Source: https://arxiv.org/abs/1609.04309
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            narrow = int(in_features // div_value ** (i + 1))
            rare = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, narrow, bias=False, device=device, dtype=dtype),
                    Linear(narrow, rare, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw the initial values again."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        """(output, loss): the log-probability of each target, and the mean of its negative.

        input_: (N, in_features) or (in_features); target_: (N) or ().
        """
        batched = target_.dim() > 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if batched and (input_.dim() != 2 or input_.shape[0] != target_.shape[0]):
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension, but got input "
                f"{tuple(input_.shape)} and target {tuple(target_.shape)}"
            )
        if not batched and input_.dim() != 1:
            raise RuntimeError(
                "0D target tensor expects 1D input tensor, but found inputs with size "
                f"{tuple(input_.shape)}"
            )
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        self._check_range(target)
        head = F.log_softmax(self.head(input), dim=1)
        column = target  # of the head: the class, or its cluster
        output = aten.zeros_like(head[:, 0])
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            logprob = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            place = (target.index_select(0, rows) - low).unsqueeze(1)
            output = output.index_copy(0, rows, logprob.gather(1, place).squeeze(1))
            column = column.index_fill(0, rows, self.shortlist_size + i)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check_range(self, target: Any) -> None:
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(tail(input), dim=1) + head[:, at].unsqueeze(1))
        return aten.cat(parts, 1)

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes: (N, in_features) → (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The likeliest class of each row: (N, in_features) → (N). Tails are computed only for rows
        whose head points at a cluster."""
        head_output = self.head(input)
        output = head_output.argmax(dim=1)
        rows = (output >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return output
        full = self._get_full_log_prob(input.index_select(0, rows), head_output[rows])
        return output.index_copy(0, rows, full.argmax(dim=1))


__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss"]
