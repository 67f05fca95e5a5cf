"""The table of datasets: what `data: {name: ...}` may name, and where each reader lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.registry import Late

if TYPE_CHECKING:
    from gradcli.data.dataset import Source

DATASETS: Late[type[Source]] = Late(
    {
        "mnist": "gradcli.data.mnist:Mnist",
        "fashion_mnist": "gradcli.data.mnist:FashionMnist",
        "cifar10": "gradcli.data.cifar:Cifar10",
        "cifar100": "gradcli.data.cifar:Cifar100",
        "idx": "gradcli.data.images:IdxSource",
        "image_folder": "gradcli.data.folder:ImageFolder",
        "npy": "gradcli.data.npy_source:NpySource",
        "npz": "gradcli.data.npz_source:NpzSource",
        "csv": "gradcli.data.csv:CsvSource",
        "table": "gradcli.data.csv:CsvSource",
        "text": "gradcli.data.text:TextSource",
        "tokens": "gradcli.data.tokens:TokenSource",
    }
)
