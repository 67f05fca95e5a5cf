"""The metrics that a config can name: each a class whose fields are its keys."""

from __future__ import annotations

from gradcli.registry import Late
from gradcli.train.metrics.labels import label_rows
from gradcli.train.metrics.metric import (
    Direction,
    Metric,
    State,
    Table,
    Targets,
    Task,
    better,
    direction_of,
)

METRICS: Late[type[Metric]] = Late(
    {
        "accuracy": "gradcli.train.metrics.labels:Accuracy",
        "top_k": "gradcli.train.metrics.labels:TopK",
        "precision": "gradcli.train.metrics.counts:Precision",
        "recall": "gradcli.train.metrics.counts:Recall",
        "f1": "gradcli.train.metrics.counts:F1",
        "roc_auc": "gradcli.train.metrics.ranks:RocAuc",
        "log_loss": "gradcli.train.metrics.labels:LogLoss",
        "brier": "gradcli.train.metrics.labels:Brier",
        "confusion": "gradcli.train.metrics.counts:Confusion",
        "perplexity": "gradcli.train.metrics.labels:Perplexity",
        "bits_per_character": "gradcli.train.metrics.labels:BitsPerCharacter",
        "bits_per_byte": "gradcli.train.metrics.labels:BitsPerByte",
        "mse": "gradcli.train.metrics.values:MSE",
        "rmse": "gradcli.train.metrics.values:RMSE",
        "mae": "gradcli.train.metrics.values:MAE",
        "mape": "gradcli.train.metrics.values:MAPE",
        "median_error": "gradcli.train.metrics.values:MedianError",
        "r2": "gradcli.train.metrics.values:R2",
    }
)

__all__ = [
    "METRICS",
    "Direction",
    "Metric",
    "State",
    "Table",
    "Targets",
    "Task",
    "better",
    "direction_of",
    "label_rows",
]
