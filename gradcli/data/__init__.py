"""Datasets by name. A reader is one file with a frozen dataclass, and one line in this table."""

from __future__ import annotations

from gradcli.data.cifar import Cifar10, Cifar100
from gradcli.data.csv import CsvSource
from gradcli.data.dataset import Dataset, Facts, Source, Split, Unseen
from gradcli.data.images import IdxSource
from gradcli.data.mnist import FashionMnist, Mnist
from gradcli.data.text import TextSource

DATASETS: dict[str, type[Source]] = {
    "mnist": Mnist,
    "fashion_mnist": FashionMnist,
    "cifar10": Cifar10,
    "cifar100": Cifar100,
    "idx": IdxSource,
    "csv": CsvSource,
    "text": TextSource,
}

__all__ = ["DATASETS", "Dataset", "Facts", "Source", "Split", "Unseen"]
