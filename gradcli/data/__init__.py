"""Datasets by name. A reader is one file with a frozen dataclass, and one line in this table."""

from __future__ import annotations

from gradcli.data.csv import CsvSource
from gradcli.data.dataset import Dataset, Facts, Source, Split, Unseen
from gradcli.data.images import IdxSource
from gradcli.data.mnist import Mnist
from gradcli.data.text import TextSource

DATASETS: dict[str, type[Source]] = {
    "mnist": Mnist,
    "idx": IdxSource,
    "csv": CsvSource,
    "text": TextSource,
}

__all__ = ["DATASETS", "Dataset", "Facts", "Source", "Split", "Unseen"]
