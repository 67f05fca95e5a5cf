"""Datasets by name, and the names of torch.utils.data for loops of one's own (loader/).

A reader is one file with a frozen dataclass, and one line in the table DATASETS (table.py). Nothing
is imported before it is asked for: files are read while the engine is being loaded (ahead.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradcli.deprecated import lookup

if TYPE_CHECKING:
    from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Source, Split, Unseen
    from gradcli.data.facts import DataFacts
    from gradcli.data.loader import *
    from gradcli.data.table import DATASETS

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DATASETS",
    "DataFacts",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "DistributedSampler",
    "DataSpec",
    "IterableDataset",
    "Labelled",
    "LoadedData",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Source",
    "Split",
    "SplitDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "Unseen",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]


# Where a name lies; the others are the loader's, which needs `multiprocessing`.
_MODULES = {
    "DATASETS": "table",
    "DataFacts": "facts",
    **dict.fromkeys(("DataSpec", "Labelled", "LoadedData", "Source", "Split", "Unseen"), "dataset"),
}


def __getattr__(name: str) -> Any:
    """A name that is looked up when it is first asked for."""
    if name not in __all__:
        return lookup(__name__, {"Facts": "DataSpec"}, name)
    return getattr(import_module(f"gradcli.data.{_MODULES.get(name, 'loader')}"), name)
