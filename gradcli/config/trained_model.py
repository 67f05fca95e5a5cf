"""A trained model in Python: what `gradcli.load` gives."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradcli import engine
from gradcli.config.published_model import open_published
from gradcli.config.trained import TrainedRun, open_trained
from gradcli.config.trust import Trust
from gradcli.data.facts import DataFacts, data_facts
from gradcli.data.transforms import HERE, Transforms
from gradcli.engine import nn
from gradcli.engine.kind import Count, Kind
from gradcli.errors import OptionError
from gradcli.train.generate import Sampling, continued
from gradcli.train.predict import Predictor
from gradcli.train.published.folder import is_published
from gradcli.train.run_name import find


def load(
    run: str | os.PathLike[str],
    *,
    runs: str | os.PathLike[str] = "runs",
    device: str = "cpu",
    trust_code: bool = False,
) -> TrainedModel:
    """The model of RUN[@best|@last|@STEP]: a path, a run's name in the folder `runs`, or `last`.

    The folder of a published language model is one too (docs/pretrained.md).
    The data that it was trained on need not be there. Without an `@` it is the best checkpoint
    where the run keeps one, else the last. Own code that none of your trainings ran is run with
    `trust_code` only, for it may do whatever you may do.

    Raises:
        ErrorGroup: its config cannot be used; E128 where own code is not trusted.
        RunError: there is no such run.
        CheckpointError: it has no such checkpoint, or that is damaged.
    """
    lines: list[str] = []
    trust = Trust(everything=trust_code, say=lines.append)
    before = engine.get_rng_state()
    try:
        if is_published(Path(run)):
            trained_run = open_published(Path(run), device)
        else:
            path, which = find(Path(runs), os.fspath(run))
            trained_run = open_trained(path, which, device, with_data=False, trust=trust)
    finally:
        engine.set_rng_state(before)  # first weights were drawn
    return TrainedModel(replace(trained_run, notes=[*lines, *trained_run.notes]))


class TrainedModel:
    """A model with what turns a user's samples into its inputs; threads may share it.

    Attributes:
        path: of the run.
        step: the checkpoint's.
        model: the module, in evaluation mode.
        facts: what is known of the data that it was trained on.
        transforms: makes the model's inputs of rows, arrays, texts or files.
        notes: what the user should know, such as own code that was run, or weights that are not
            finite.
    """

    def __init__(self, run: TrainedRun) -> None:
        job = run.job
        facts = data_facts(job.dataset.facts, job.dataset.state)
        assert facts is not None, "a run has data"
        self.path = run.path
        self.step = run.meta.step
        self.model: nn.Module = job.model
        self.facts: DataFacts = facts
        self.transforms = Transforms(job.dataset.source, facts)
        self.notes = tuple(run.notes)
        self._job = job
        self._predictor = Predictor(job)

    def predict(self, samples: Any, top: int = 1) -> list[dict[str, Any]]:
        """What the model says of each sample, as `gradcli predict --json` has it.

        `samples` is what `transforms` takes. Of classes there are `label` and `probability` of the
        likeliest, `probabilities` of all and the `top` ones; of values `values`, by the name of
        the target. `index` counts the samples, in each file for itself.
        """
        top = Kind.of(Count).convert_argument("predict", "top", top)
        files = self.transforms.files(samples)
        if files:
            return list(self._predictor.files(files, top, warnings.warn))
        inputs = self.transforms(samples)
        indices = range(inputs.shape[0])
        predictions = self._predictor.predictions(inputs, top, HERE, indices)
        return [{"index": i, **answer} for i, answer in zip(indices, predictions, strict=True)]

    def generate(
        self,
        prompt: str,
        tokens: int = 300,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        repetition_penalty: float = 1.0,
        stop: str | Sequence[str] = (),
        stop_token: str | Sequence[str] = (),
        ignore_end: bool = False,
    ) -> str:
        """What a model of text writes behind a prompt, like `gradcli predict --prompt`."""
        prompt = Kind.of(str).convert_argument("generate", "prompt", prompt)
        tokens = Kind.of(Count).convert_argument("generate", "tokens", tokens)
        stops, ends = ((x,) if isinstance(x, str) else tuple(x) for x in (stop, stop_token))
        if not all(stops) or not all(ends):
            raise OptionError("generate: an empty text in stop would end it at once")
        how = Sampling(
            tokens,
            temperature,
            top_k,
            top_p,
            seed,
            repetition_penalty=repetition_penalty,
            stop=stops,
            stop_token=ends,
            ignore_end=ignore_end,
        )
        with self._predictor.alone():
            return "".join(continued(self._job, prompt, how))

    def __repr__(self) -> str:
        return f"TrainedModel({str(self.path)!r}, step {self.step})"
