"""evaluation.json and evaluation.safetensors: results of the last evaluation of a training.

A report needs only them, not the data. A training matters more than they do: whatever goes wrong
with them is a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.facts import DataFacts
from gradcli.engine import distributed
from gradcli.errors import GradcliError
from gradcli.train.close_look import CHANNELS, CloseLook, Sight
from gradcli.train.directory import EVALUATION
from gradcli.train.evaluate import Evaluation
from gradcli.train.json_file import FORMAT
from gradcli.train.log import strict
from gradcli.train.safetensors_file import RawTensor, encode_header, layout
from gradcli.train.state import bytes_of, dtype_name

if TYPE_CHECKING:
    from gradcli.data import DataSpec
    from gradcli.engine import Tensor
    from gradcli.train.directory import RunDirectory
    from gradcli.train.job import Job

TRIED = 4  # samples before a training begins
LEAST_SIDE = 8  # of a picture without channels; smaller ones are tables
ROUNDING = 1e-3  # beside 0..1, of pixels that were normalised and back


def write_evaluation(
    directory: RunDirectory,
    job: Job,
    sight: Sight | None,
    step: int,
    metrics: Mapping[str, float],
    note: Callable[[str], None],
) -> None:
    """Write both files for the weights of `step`; a failure becomes a note."""
    if sight is None:
        return
    try:
        tensors = stored_tensors(job, sight)
        head = {"format": FORMAT, "step": step, "split": sight.split}
        record = {**head, **_record(job, sight, metrics, tensors)}
        encoded = _encoded(tensors, step, sight.split) if tensors else []
        directory.write_evaluation(record, encoded)
    except Exception as error:  # of the user's own code too: no reason to lose a training
        reason = error.message if isinstance(error, GradcliError) else _describe(error)
        directory.discard_evaluation()
        note(f"warning: {EVALUATION[0]} is not written: {reason}")


def obstacle(job: Job) -> str:
    """Why the files cannot be made, after a try on a few samples; mostly the empty string.

    It does not try on a GPU, which would compile kernels just for these few samples.
    """
    splits, model = job.dataset.splits, job.model
    name = next((split for split in ("test", "val") if split in splits), "")
    on_cpu = next(model.parameters()).device == "cpu"
    if not name or not on_cpu or job.dataset.facts is None or distributed.size() > 1:
        return ""
    try:
        look = CloseLook(job, splits[name], name)
        if look.sees:
            figures = Evaluation(job, splits[name], name, look=look).run(limit=TRIED)
            model.eval()
            sight = look.finish()
            _record(job, sight, figures, stored_tensors(job, sight))
    except Exception as error:  # of the user's own code too
        return error.message if isinstance(error, GradcliError) else _describe(error)
    finally:
        model.train()
    return ""


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _encoded(tensors: Mapping[str, Tensor], step: int, split: str) -> list[bytes | memoryview]:
    """The bytes of a safetensors file with its step and split."""
    entries = {
        name: RawTensor(dtype_name(tensor), tuple(tensor.shape), bytes_of(tensor))
        for name, tensor in tensors.items()
    }
    header = encode_header(entries, {"step": str(step), "split": split})
    return [header, *(entries[name].data for name in layout(entries))]


def stored_tensors(job: Job, sight: Sight) -> dict[str, Tensor]:
    """The tensors to store: outputs, and the worst samples as they were before normalisation."""
    tensors: dict[str, Tensor] = {}
    if sight.outputs is not None and sight.targets is not None:
        tensors["index"] = engine.tensor(sight.index, dtype=engine.int64, device="cpu")
        tensors |= {"outputs": sight.outputs, "targets": sight.targets}
    if sight.inputs is None:
        return tensors
    facts = job.dataset.facts
    with engine.device("cpu"):
        tensors["worst_inputs"] = _restored(sight.inputs, facts)
        if sight.task == "images" and sight.predictions is not None and sight.truths is not None:
            outputs = sight.predictions.reshape(sight.truths.shape)
            pair = {"worst_outputs": outputs, "worst_targets": sight.truths}
            itself = facts.target == facts.input
            restored = {name: _restored(tensor, facts) for name, tensor in pair.items()}
            tensors |= restored if itself else pair
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _restored(inputs: Tensor, facts: DataSpec) -> Tensor:
    """Inputs as float32, without the mean and deviation of pictures."""
    from gradcli.data.samples import by_channel

    x = inputs.float()
    if facts.input_kind != "float" or not isinstance(facts, DataFacts):
        return x
    x = x * by_channel(facts.std, x.ndim) + by_channel(facts.mean, x.ndim)
    return x.clamp(0.0, 1.0) if _may_be_images(x) else x


def _may_be_images(inputs: Tensor) -> bool:
    """Whether inputs can be shown as pictures of grey, colours, or colours with transparency."""
    shape = inputs.shape[1:]
    with_channels = len(shape) == 3 and shape[0] in CHANNELS
    if not with_channels and not (len(shape) == 2 and min(shape) >= LEAST_SIDE):
        return False
    low, high = inputs.amin().item(), inputs.amax().item()
    return bool(low >= -ROUNDING and high <= 1 + ROUNDING)


def _record(
    job: Job, sight: Sight, metrics: Mapping[str, float], tensors: Mapping[str, Tensor]
) -> dict[str, Any]:
    """The fields of evaluation.json after its head."""
    facts = job.dataset.facts
    classes = list(facts.labels) if sight.task == "classes" and facts.labels else None
    values = list(facts.values) if sight.task == "values" and facts.values else None
    columns = list(getattr(facts, "columns", ())) or None
    inputs = tensors.get("worst_inputs")
    own = {name: value for name, value in metrics.items() if name.startswith(f"{sight.split}.")}
    return {
        "task": sight.task,
        "samples": sight.samples,
        "rows": len(sight.index),
        "metrics": strict(dict(own)),
        "classes": classes,
        "outputs": values,
        "columns": columns,
        "pictures": inputs is not None and _may_be_images(inputs),
        **({} if sight.confusion is None else {"confusion": sight.confusion.tolist()}),
        "worst": _worst(facts, sight),
    }


def _worst(facts: DataSpec, sight: Sight) -> list[dict[str, Any]]:
    """A record for each of the worst samples: index, loss, truth and guess."""
    records: list[dict[str, Any]] = []
    for number, (index, loss) in enumerate(sight.worst):
        record: dict[str, Any] = {"index": index, "loss": _finite(loss)}
        records.append(record | _answer(sight, number))
    for record, row in zip(records, _rows(facts, sight), strict=False):
        record["row"] = row
    return records


def _answer(sight: Sight, number: int) -> dict[str, Any]:
    nothing = {"truth": None, "guess": None, "certainty": None}
    if sight.predictions is None or sight.truths is None or sight.task == "images":
        return nothing
    truth, answer = sight.truths[number], sight.predictions[number]
    if sight.task == "values":
        return {**nothing, "truth": _plain(truth), "guess": _plain(answer)}
    guess = int(answer.argmax().item())
    certainty = engine.softmax(answer, dim=-1)[guess].item()
    return {"truth": int(truth.item()), "guess": guess, "certainty": _finite(certainty)}


def _plain(values: Tensor) -> float | list[float | None] | None:
    """A number, or a list of several."""
    numbers = [_finite(_short(value)) for value in values.reshape(-1).tolist()]
    return numbers[0] if len(numbers) == 1 else numbers


def _rows(facts: DataSpec, sight: Sight) -> list[dict[str, float | str | None]]:
    """Inputs that are rows of a table, by its columns; nothing of other data."""
    if sight.inputs is None or not isinstance(facts, DataFacts) or not facts.columns:
        return []
    if len(facts.input) > 1:  # windows of rows
        return []
    return [_row(facts, numbers) for numbers in sight.inputs.tolist()]


def _row(facts: DataFacts, numbers: list[float]) -> dict[str, float | str | None]:
    """A row before it was encoded; a gap among categories is None, one among numbers its mean."""
    row: dict[str, float | str | None] = {}
    for column, number in zip(facts.numeric, numbers, strict=False):
        row[column.name] = _finite(_short(number * column.scale + column.shift))
    at = len(facts.numeric)
    for category in facts.category:
        shares = numbers[at : at + len(category.shares)]
        at += len(category.shares)
        row[category.name] = category.shares[shares.index(1.0)][0] if 1.0 in shares else None
    return row


def _short(number: float) -> float:
    """With the digits that float32 has for sure, so that 39.1 stays 39.1."""
    return float(f"{number:.6g}")


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
