"""`torchlab.nn.parallel`: one model on several devices, or in several processes.

Source: https://docs.pytorch.org/docs/2.13/nn.html#dataparallel-layers-multi-gpu-distributed
"""

from torchlab.nn.parallel.data_parallel import DataParallel, data_parallel
from torchlab.nn.parallel.distributed import DistributedDataParallel
from torchlab.nn.parallel.parallel_apply import parallel_apply
from torchlab.nn.parallel.replicate import replicate
from torchlab.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
