"""What each warning of a config means: its cause and its cure, by its code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Caution(NamedTuple):
    """What a config is warned of, why, and what can be done."""

    title: str
    cause: str
    cure: str


CAUTIONS: dict[str, Caution] = {
    "W101": Caution(
        "The last layer and the loss do not belong together",
        "`cross_entropy` and `bce_with_logits` apply softmax or sigmoid themselves; `bce` takes "
        "probabilities, `nll` and `kl` their logarithms.",
        "Leave the layer out, or choose the loss for what the layer gives.",
    ),
    "W102": Caution(
        "A milestone of the schedule is never reached",
        "`schedule.at` names a step behind the end of the run, or of that part of it.",
        "Write an earlier step, or a share such as `50%`; or train longer.",
    ),
    "W103": Caution(
        "A bias that batch norm removes",
        "Batch norm subtracts the mean, and with it whatever the layer before it adds.",
        "Write `bias: false` in that layer; the bias of the batch norm stays.",
    ),
    "W104": Caution(
        "A variable that nothing uses",
        "`vars` has a name that no `$vars.NAME` names.",
        "Remove it, or look for a misspelt use.",
    ),
    "W106": Caution(
        "Scaled targets and numbers in the target's units",
        "With `data.target_scale: standard` the loss is of targets of mean 0 and deviation 1: a "
        "bounded last layer cannot reach them, and borders and bounds of the loss count in "
        "deviations.",
        "Watch `mae` or `rmse`, which are in the target's units, or write `target_scale: none`.",
    ),
    "W107": Caution(
        "A target of many numbers is read as classes",
        "Each different number in the target's column is a class, with few rows each.",
        "Write `task: regression` in `data` to predict the number itself.",
    ),
    "W108": Caution(
        "An own loss is no mean",
        "A batch of the same samples twice has another loss, so batches of different sizes do not "
        "weigh alike.",
        "End the loss in `mean()`.",
    ),
    "W109": Caution(
        "Labels do not begin at 0",
        "The classes below the first label have no sample, and the model has outputs for them.",
        "Subtract the first label, or write `data.classes` if that is meant.",
    ),
    "W110": Caution(
        "Weights that get no gradient",
        "No way back leads from the loss to these weights: something behind them rounds, takes "
        "the largest, detaches or is the same for every input, such as a softmax over one value.",
        "Change or remove what cuts the way; weights that shall stay as they are go into `freeze`.",
    ),
    "W111": Caution(
        "Two norms in a row",
        "A norm directly behind another one gets values that have just been normalised.",
        "Leave one of the two out.",
    ),
    "W112": Caution(
        "Dropout directly before batch norm",
        "While training, the zeros of dropout raise the variance that batch norm learns; in "
        "evaluation there are none, so the learnt variance is too large.",
        "Put the dropout behind the batch norm, or leave it out.",
    ),
    "W113": Caution(
        "A width of 1 inside the model",
        "A layer leaves one number (or one a step), and all layers behind it see only that.",
        "Make it wider. Only the last layer of a model has a reason to be so narrow.",
    ),
    "W114": Caution(
        "An output that the loss never sees",
        "The loss is the same whatever the model answers there, so nothing is learnt of it.",
        "Let the model have fewer outputs, or the loss use all of them.",
    ),
    "W115": Caution(
        "Classes are balanced twice",
        "`train.sampler: balanced` draws all classes equally often, and the loss weighs them too.",
        "Keep one of the two.",
    ),
    "W116": Caution(
        "Counts in a split that leave most of the data",
        "`80` is 80 samples and `80%` a share. The counts add up to 100 though there are more "
        "samples, or leave more than half of them unused.",
        "Write percents; or ignore this where a small part is meant.",
    ),
    "W117": Caution(
        "A time series that goes back in time",
        "The rows of a `window` follow each other as they lie in the file, and its column of dates "
        "or times (ISO form) falls somewhere. Newest first, a model learns to tell the past.",
        "Sort the file, its oldest row first; series of several places are a file each.",
    ),
}


def table() -> Iterator[str]:
    """The rows of docs/warnings.md."""
    yield from ("| Code | What | Cause | Cure |", "|---|---|---|---|")
    for code, caution in CAUTIONS.items():
        yield f"| {code} | {caution.title} | {caution.cause} | {caution.cure} |"
