"""Unpooling, and pooling with windows drawn at random.

Source: https://docs.pytorch.org/docs/2.13/nn.html#pooling-layers
"""

from __future__ import annotations

from typing import Any

from torchlab.nn._sizes import each_of
from torchlab.nn.pooling import _Pool


class _MaxUnpool(_Pool):
    """Takes the two results of a max pooling with return_indices=True."""

    dimensions = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        n = self.dimensions
        self.kernel_size = each_of(kernel_size, n)
        self.stride = each_of(stride if stride is not None else kernel_size, n)
        self.padding = each_of(padding, n)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return self._pool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts the maxima (N, C, L) back where they came from, zeros elsewhere.

    output_size: where several sizes pool to the same, the one meant.
    """

    dimensions = 1
    _function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """Puts the maxima (N, C, H, W) back where they came from, zeros elsewhere.

    output_size: where several sizes pool to the same, the one meant.
    """

    dimensions = 2
    _function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """Puts the maxima (N, C, D, H, W) back where they came from, zeros elsewhere.

    output_size: where several sizes pool to the same, the one meant.
    """

    dimensions = 3
    _function = "max_unpool3d"


class _FractionalMaxPool(_Pool):
    """Exactly one of output_size and output_ratio (its share of the input's size, between 0 and 1)
    says how large the result is. Source: https://arxiv.org/abs/1412.6071"""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    dimensions = 0

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        n, name = self.dimensions, type(self).__name__
        kernel_size = each_of(kernel_size, n)
        output_size = None if output_size is None else each_of(output_size, n)
        output_ratio = None if output_ratio is None else each_of(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if output_ratio is not None and not all(0 < r < 1 for r in output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.kernel_size = kernel_size
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = output_size
        self.output_ratio = output_ratio

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows of (N, C, H, W) whose places are drawn at random."""

    dimensions = 2
    _function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of windows of (N, C, D, H, W) whose places are drawn at random."""

    dimensions = 3
    _function = "fractional_max_pool3d"


__all__ = [
    "FractionalMaxPool2d", "FractionalMaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip
