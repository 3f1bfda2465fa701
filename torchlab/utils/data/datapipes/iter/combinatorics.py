"""Where PyTorch has the pipes that shuffle and sample, and other libraries import their classes."""

from torchlab.utils.data.datapipes.iter.order import SamplerIterDataPipe, ShufflerIterDataPipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]
