"""The public name space `torchlab.utils.data`. Source:
https://docs.pytorch.org/docs/2.13/data.html"""

from __future__ import annotations

from torchlab.utils.data import _utils as _utils
from torchlab.utils.data.adapter import IterableDatasetAdapter
from torchlab.utils.data.bucketing import BucketBatchSampler
from torchlab.utils.data.collate import default_collate, default_convert
from torchlab.utils.data.dataloader import DataLoader, get_worker_info
from torchlab.utils.data.datapipes._decorators import (
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from torchlab.utils.data.datapipes.datapipe import (
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
)
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
from torchlab.utils.data.distributed import DistributedSampler
from torchlab.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torchlab.utils.data.shared_containers import SharedDict, SharedList
from torchlab.utils.data.tar_shards import TarShards
