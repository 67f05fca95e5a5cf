"""torch.utils.data's names for those who write their own training loop in Python.

A config's `data:` needs none of this: there a batch is gathered inside the engine (samples.py), in
the captured step. The two meet in `SplitDataset`, which gives the samples of a loaded split one by
one.
"""

from __future__ import annotations

from gradcli.data.loader.collate import default_collate, default_convert
from gradcli.data.loader.dataloader import DataLoader
from gradcli.data.loader.distributed import DistributedBatchSampler, DistributedSampler
from gradcli.data.loader.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from gradcli.data.loader.sets import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    SplitDataset,
    Subset,
    TensorDataset,
    random_split,
)
from gradcli.data.loader.worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SplitDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
