"""The public name space `torchlab.utils.data`. Source:
https://docs.pytorch.org/docs/2.13/data.html"""

from __future__ import annotations

from torchlab.utils.data.collate import default_collate, default_convert
from torchlab.utils.data.dataloader import DataLoader, get_worker_info
from torchlab.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from torchlab.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
