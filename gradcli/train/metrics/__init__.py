"""The metrics that a config can name: each a class whose fields are its keys."""

from __future__ import annotations

from gradcli.train.metrics.counts import F1, Confusion, Precision, Recall
from gradcli.train.metrics.labels import (
    Accuracy,
    BitsPerCharacter,
    Brier,
    LogLoss,
    Perplexity,
    TopK,
    label_rows,
)
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
from gradcli.train.metrics.ranks import RocAuc
from gradcli.train.metrics.values import MAE, MAPE, MSE, R2, RMSE, MedianError

METRICS: dict[str, type[Metric]] = {
    "accuracy": Accuracy,
    "top_k": TopK,
    "precision": Precision,
    "recall": Recall,
    "f1": F1,
    "roc_auc": RocAuc,
    "log_loss": LogLoss,
    "brier": Brier,
    "confusion": Confusion,
    "perplexity": Perplexity,
    "bits_per_character": BitsPerCharacter,
    "mse": MSE,
    "rmse": RMSE,
    "mae": MAE,
    "mape": MAPE,
    "median_error": MedianError,
    "r2": R2,
}

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
