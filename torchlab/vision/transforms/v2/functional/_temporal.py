"""The frames of videos.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.UniformTemporalSubsample.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms.v2.functional._registry import kernel, run
from torchlab.vision.tv_tensors import Video


def uniform_temporal_subsample(inpt: Any, num_samples: int) -> Any:
    """`num_samples` frames of a video, at even distances from the first to the last."""
    return run(uniform_temporal_subsample, inpt, num_samples)


@kernel(uniform_temporal_subsample, Tensor, Video)
def uniform_temporal_subsample_video(video: Any, num_samples: int) -> Any:
    last = video.shape[-4] - 1
    at = aten.linspace(0, last, num_samples, device=video.device).long()
    return aten.index_select(video, -4, at)
