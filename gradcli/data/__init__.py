"""Datasets by name, and the names of torch.utils.data for loops of one's own (loader/).

A reader is one file with a frozen dataclass, and one line in the table DATASETS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.data.arrays import NpySource, NpzSource
from gradcli.data.cifar import Cifar10, Cifar100
from gradcli.data.csv import CsvSource
from gradcli.data.dataset import Facts, Labelled, LoadedData, Source, Split, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.folder import ImageFolder
from gradcli.data.images import IdxSource
from gradcli.data.mnist import FashionMnist, Mnist
from gradcli.data.text import TextSource

if TYPE_CHECKING:
    from gradcli.data.loader import *

DATASETS: dict[str, type[Source]] = {
    "mnist": Mnist,
    "fashion_mnist": FashionMnist,
    "cifar10": Cifar10,
    "cifar100": Cifar100,
    "idx": IdxSource,
    "image_folder": ImageFolder,
    "npy": NpySource,
    "npz": NpzSource,
    "csv": CsvSource,
    "text": TextSource,
}

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DATASETS",
    "DataFacts",
    "DataLoader",
    "Dataset",
    "Facts",
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


def __getattr__(name: str) -> Any:
    """The loader's names; it needs `multiprocessing`, and no config needs it."""
    if name not in __all__:
        raise AttributeError(f"gradcli.data has no '{name}'")
    from gradcli.data import loader

    return getattr(loader, name)
