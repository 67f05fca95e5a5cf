from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.config.load import Config, load
from gradcli.errors import ErrorGroup, GradcliError
from gradcli.train.job import Ema

Write = Callable[..., Path]


def mistakes(path: Path, *overrides: str) -> list[GradcliError]:
    with pytest.raises(ErrorGroup) as caught:
        load(path, overrides)
    return caught.value.errors


def messages(path: Path, *overrides: str) -> str:
    return "\n".join(
        f"{error.location}: {error.message} [{error.caret}] {error.notes}"
        for error in mistakes(path, *overrides)
    )


def test_the_base_config_is_right(config_file: Write) -> None:
    config = load(config_file())
    assert [layer.output.shape for layer in config.model] == [(784,), (16,), (16,), (10,)]
    assert sum(layer.parameters for layer in config.model) == 784 * 16 + 16 + 16 * 10 + 10
    assert (config.name, config.steps, config.train.batch) == ("tiny", 20, 10)
    assert config.optim.values["lr"] == 0.1
    assert [str(expected) for expected in config.expect] == ["test.accuracy >= 0.5"]
    assert config.warnings == ()


def test_resolved_loads_to_the_same_config(config_file: Write) -> None:
    import json

    config = load(
        config_file(
            (
                "- relu",
                "- repeat: {times: 2, layers: [linear: 16, residual: [relu, dropout: 0.1]]}",
            ),
            ("best: val.accuracy", "early_stop: {metric: val.loss}"),
            ("{name: cosine, warmup: 5%}", "{name: step, at: [50%, 18]}"),
        )
    )
    again = load(config_file(text=json.dumps(config.resolved)))
    assert again.resolved == config.resolved
    assert [layer.output for layer in again.model] == [layer.output for layer in config.model]


def test_every_mistake_is_reported_at_its_place(config_file: Write) -> None:
    path = config_file(
        ("lr: 0.1", "lr: no, momentun: 0.9"),
        ("batch: 10", "batch: 2.5"),
        ("linear: 16", "dropout: 1.5"),
        ("relu", "rellu"),
        ("metrics: [accuracy]", "metrics: [accurracy]"),
    )
    found = mistakes(path)
    places = [(error.location.line, error.location.column) for error in found if error.location]
    assert places == [(6, 14), (7, 5), (10, 11), (11, 24), (11, 28), (13, 27)]
    text = messages(path)
    assert "unknown key 'momentun' in optim (sgd) [did you mean 'momentum'?]" in text
    assert "keys here: lr, momentum, dampening, weight_decay, nesterov" in text
    assert "optim.lr must be a finite number >= 0, got text 'no'" in text
    assert "train.batch must be a whole number from 1 to 1000000, got 2.5" in text
    assert "no layer is called 'rellu' [did you mean 'relu'?]" in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("lr: 0.1", 'lr: "0.1"', "got text '0.1' [quotes make it text: drop them]"),
        ("lr: 0.1", "lr: [0.1]", "optim.lr must be a finite number >= 0, got a list"),
        ("lr: 0.1", "lr: ", "got no value (null)"),
        ("lr: 0.1", "lr: true", "got the truth value true"),
        ("lr: 0.1", "lr: .nan", "finite number >= 0, got nan"),
        ("lr: 0.1", "lr: .inf", "finite number >= 0, got inf"),
        ("lr: 0.1", "lr: -0.1", "finite number >= 0, got -0.1"),
        ("lr: 0.1", "learning_rate: 0.1", "did you mean 'lr'?"),
        ("lr: 0.1", "momentum: 0.9", "optim.lr is missing: a finite number >= 0"),
        ("lr: 0.1", "lr: 0.1, momentum: 1.0", "momentum must be a number in [0, 1), got 1.0"),
        ("lr: 0.1", "lr: 0.1, nesterov: true", "nesterov needs momentum above 0"),
        ("sgd, lr: 0.1", "adam, betas: [0.9, 1.0]", "each in [0, 1), got 1.0 (item 2)"),
        ("sgd, lr: 0.1", "adam, betas: [0.9]", "betas must be two numbers"),
        ("name: sgd", "name: torch.optim.SGD", "known here: sgd, adam, adamw"),
        ("{name: sgd, lr: 0.1}", "[sgd]", "optim must be a name or {name: ..., keys}, got a list"),
        ("{name: sgd, lr: 0.1}", "{lr: 0.1}", "got a map without name"),
        ("batch: 10", "batch: 0", "from 1 to 1000000, got 0"),
        ("batch: 10", "batch: true", "got the truth value true"),
        ("batch: 10", "batch: 017", "leading zero"),
        ("batch: 10", "batch: 1000000000000", "from 1 to 1000000, got 1000000000000"),
        ("batch: 10", "batch_size: 10", "did you mean 'batch'?"),
        ("batch: 10", "batch: 10, lr: 1", "unknown key 'lr' in train [did you mean optim.lr?]"),
        ("batch: 10", "batch: 10, device: cuda", "in train [did you mean the option --device?]"),
        ("loss:", "epochs: 2\nloss:", "'epochs' in the config [did you mean train.epochs?]"),
        ("loss:", "warmup: 5%\nloss:", "'warmup' in the config [did you mean schedule.warmup?]"),
        ("loss:", "pretrained: a.safetensors\nloss:", "pretrained must be a map, got text"),
        ("- linear: 16", "- celu: -1\n  - linear: 16", "celu: alpha must be a finite number > 0"),
        ("epochs: 2", "epochs: -1", "from 0 to 2147483647 or null, got -1"),
        ("epochs: 2", "epochs: 2, steps: 5", "train.epochs and train.steps both say"),
        ("epochs: 2, ", "", "train needs epochs or steps"),
        (
            "best: val.accuracy",
            "ema: 1",
            "train.ema must be a number in [0, 1), or a map {decay, warmup, buffers}, got 1",
        ),
        ("best: val.accuracy", "ema: {decay: 2}", "train.ema.decay must be a number in [0, 1)"),
        (
            "best: val.accuracy",
            "ema: {decay: 0.9, warm_up: false}",
            "unknown key 'warm_up' in train.ema [did you mean 'warmup'?]",
        ),
        ('">= 0.5"', "0.5", "expect must be a map such as"),
        ('">= 0.5"', '"> 1e-400"', "expect.test.accuracy: 1e-400 is no number that float64 holds"),
        ('">= 0.5"', '"about 0.5"', "must be a comparison (>=, <=, >, <) and a number"),
        ("metrics: [accuracy]", "metrics: [mse]", "'mse' is for values, this data has labels"),
        ("metrics: [accuracy]", "metrics: accuracy", "metrics must be a list of metric names"),
        ("loss: cross_entropy", "loss: mse", "loss 'mse' is for values, this data has labels"),
        ("warmup: 5%", "warmup: 500", "schedule.warmup takes 500 steps, the whole run has 20"),
        ("warmup: 5%", "warmup: 105%", "a number of steps or a share such as 5%"),
        ("name: cosine, warmup: 5%", "name: step, at: [50%, 3]", "must rise, got steps [10, 3]"),
        ("name: cosine, warmup: 5%", "name: step", "needs either at, a list of points, or every"),
        ("name: cosine, warmup: 5%", "name: step, at: [1], every: 2", "either at, a list of"),
        ("name: cosine, warmup: 5%", "name: plateau, metric: val.acuracy", "'val.accuracy'?"),
        ("name: cosine, warmup: 5%", "name: plateau, factor: 1.0", "a number in [0, 1), got 1.0"),
        (
            "cosine, warmup: 5%",
            "one_cycle, three_phase: true, rise: 0.7",
            "rise must be from 0 to 0.5",
        ),
        ("cosine, warmup: 5%", "sequential, at: [5], parts: [cosin, linear]", "mean 'cosine'?"),
        ("cosine, warmup: 5%", "sequential, at: [5], parts: [linear]", "1 part needs 0 points"),
        ("cosine, warmup: 5%", "sequential, at: [5], parts: [linear, plateau]", "cannot be a part"),
        (
            "cosine, warmup: 5%",
            "sequential, at: [5], parts: [linear, {name: cosine, warmup: 16}]",
            "schedule.parts.1.warmup takes 16 steps, that part of the run has 15",
        ),
        (
            "cosine, warmup: 5%",
            "sequential, at: [5], parts: [linear, {name: cosine, finale: 1}]",
            "unknown key 'finale' in schedule (cosine) [did you mean 'final'?]",
        ),
        ("gradcli: 1", "gradcli: 2", "config format 2 is not known; this gradcli reads gradcli: 1"),
        ("gradcli: 1\n", "", "gradcli is missing"),
        ("name: tiny", "name: ../evil", "1 to 100 letters"),
        ("name: tiny", "name: 12", "got 12"),
        ("loss: cross_entropy", "losses: cross_entropy", "did you mean 'loss'?"),
        ("batch: 10", "batch: 10, micro_batch: 20", "micro_batch 20 is larger than train.batch"),
        ("batch: 10", "batch: 101, drop_last: true", "set train.batch to 100 or less"),
        ("model:\n", "model: []\nvars:\n", "model must be a list of at least one layer"),
    ],
)
def test_a_wrong_value_is_named(config_file: Write, old: str, new: str, expected: str) -> None:
    assert expected in messages(config_file((old, new)))


def test_a_mistake_of_the_data_stands_at_the_key_that_it_begins_with(
    config_file: Write, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,p\n2,q\n" * 9)
    data = "{name: csv, file: x.csv, target: b, numeric: [a], split: {train: 20, val: 1}}"
    [error] = mistakes(config_file(("{name: fake}", data)))
    assert error.message.startswith("split asks for 21 samples")
    assert error.location and error.location.column == len("data: {") + data.index("split")


def test_zero_epochs_are_allowed(config_file: Write) -> None:
    assert load(config_file(("epochs: 2", "epochs: 0"))).steps == 0


def test_a_share_of_the_run_becomes_steps(config_file: Write) -> None:
    from gradcli.config.schedules import steps_of

    assert [steps_of(value, 4300) for value in ("5%", 7, "0%", "100%")] == [215, 7, 0, 4300]


class TestReferences:
    def test_keep_their_type(self, config_file: Write) -> None:
        path = config_file(
            ("loss:", "vars: {width: 12, rate: 1e-3}\nloss:"),
            ("linear: 16", "linear: $vars.width"),
            ("lr: 0.1", "lr: $vars.rate"),
        )
        config = load(path)
        assert config.model[1].output.shape == (12,)
        assert config.optim.values["lr"] == 0.001

    def test_reach_other_sections_and_facts(self, config_file: Write) -> None:
        path = config_file(
            ("linear: 16", "linear: $data.features"), ("epochs: 2", "epochs: $gradcli")
        )
        assert load(path).model[1].output.shape == (784,)

    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("$vars.a", "references go in a circle: $vars.a -> $vars.b -> $vars.a"),
            ("$train.bacth", "names nothing in the config [did you mean 'batch'?]"),
            ("$data.vocab", "this data has no 'vocab'"),
            ("$data.clases", "did you mean 'classes'?"),
            ("$train", "names a map; only single values are shared"),
            ("$", "names nothing"),
            ('"$vars.a"', "got text '$vars.a'"),
            ("x$vars.a", "got text 'x$vars.a'"),
        ],
    )
    def test_that_lead_nowhere(self, config_file: Write, reference: str, expected: str) -> None:
        path = config_file(
            ("loss:", "vars: {a: $vars.b, b: $vars.a}\nloss:"),
            ("linear: 16", f"linear: {reference}"),
        )
        assert expected in messages(path)


class TestExtends:
    def test_maps_merge_and_lists_replace(self, config_file: Write) -> None:
        config_file(name="base.yaml")
        child = (
            "extends: base.yaml\ntrain: {batch: 20}\nmodel: [flatten, linear: 10]\nname: child\n"
        )
        config = load(config_file(text=child))
        assert (config.train.batch, config.train.epochs, config.name) == (20, 2, "child")
        assert len(config.model) == 2
        assert [path.name for path, _ in config.sources] == ["config.yaml", "base.yaml"]

    def test_null_takes_the_base_value_away(self, config_file: Write) -> None:
        config_file(name="base.yaml")
        child = "extends: base.yaml\ntrain: {best: null}\nschedule: null\n"
        config = load(config_file(text=child))
        assert config.train.best is None
        assert config.schedule.name == "constant"

    def test_another_name_replaces_the_section(self, config_file: Write) -> None:
        config_file(("lr: 0.1", "lr: 0.1, momentum: 0.9"), name="base.yaml")
        config = load(config_file(text="extends: base.yaml\noptim: {name: adamw}\n"))
        assert config.optim.values["lr"] == 0.001
        config = load(config_file(text="extends: base.yaml\noptim: {name: sgd, lr: 1}\n"))
        assert config.optim.values["momentum"] == 0.9

    def test_a_bare_name_replaces_the_section(self, config_file: Write) -> None:
        config_file(name="base.yaml")
        config = load(config_file(text="extends: base.yaml\noptim: adam\n"))
        assert (config.optim.name, config.optim.values["lr"]) == ("adam", 0.001)

    def test_a_list_is_laid_in_order(self, config_file: Write) -> None:
        config_file(name="one.yaml")
        config_file(name="two.yaml", text="train: {batch: 50, seed: 3}\n")
        config = load(config_file(text="extends: [one.yaml, two.yaml]\ntrain: {seed: 4}\n"))
        assert (config.train.batch, config.train.seed) == (50, 4)

    def test_circles_are_refused(self, config_file: Write) -> None:
        config_file(name="one.yaml", text="extends: config.yaml\n")
        found = messages(config_file(text="extends: one.yaml\n"))
        assert "extends goes in a circle: config.yaml -> one.yaml -> config.yaml" in found

    def test_a_mistake_in_the_base_stands_in_the_base(self, config_file: Write) -> None:
        config_file(("lr: 0.1", "lr: fast"), name="base.yaml")
        found = messages(config_file(text="extends: base.yaml\n"))
        assert "base.yaml:11:24: optim.lr must be" in found

    def test_a_missing_base_is_named_at_its_place(self, config_file: Write) -> None:
        found = messages(config_file(text="extends: nothing.yaml\n"))
        assert "config.yaml:1:10: there is no file" in found

    def test_many_files_are_refused(self, config_file: Write, tmp_path: Path) -> None:
        for number in range(70):
            (tmp_path / f"{number}.yaml").write_text(f"extends: {number + 1}.yaml\n")
        assert "extends at most 64 files" in messages(tmp_path / "0.yaml")


class TestOverrides:
    def load(self, path: Path, *overrides: str) -> Config:
        return load(path, overrides)

    def test_replace_values_and_reach_named_layers(self, config_file: Write) -> None:
        path = config_file(("- linear: 16", "- linear: {out: 16, name: body}"))
        config = self.load(path, "optim.lr=3e-4", "model.body.out=12", "train.best=null")
        assert config.optim.values["lr"] == 3e-4
        assert config.model[1].output.shape == (12,)
        assert config.train.best is None

    def test_take_lists_maps_and_references(self, config_file: Write) -> None:
        config = self.load(
            config_file(),
            "model=[flatten, linear: $data.classes]",
            "train.early_stop={metric: val.loss}",
        )
        assert len(config.model) == 2
        assert config.train.early_stop is not None

    @pytest.mark.parametrize("written", ["0.99", "{decay: 0.99}"])
    def test_a_number_alone_is_the_decay_of_ema(self, config_file: Write, written: str) -> None:
        config = self.load(config_file(), f"train.ema={written}")
        assert config.train.ema == Ema(0.99)
        full = {"decay": 0.99, "warmup": True, "buffers": True}
        assert config.resolved["train"]["ema"] == full

    def test_reach_figures_with_a_dot_in_their_name(self, config_file: Write) -> None:
        config = self.load(config_file(), "expect.val.loss=< 5", "expect.test.accuracy=null")
        assert config.resolved["expect"] == {"val.loss": "< 5.0"}

    def test_a_section_name_replaces_the_section(self, config_file: Write) -> None:
        config = self.load(config_file(), "optim=adamw", "optim.lr=0.5")
        assert (config.optim.name, config.optim.values["lr"]) == ("adamw", 0.5)

    def test_are_in_resolved_and_not_in_the_sources(self, config_file: Write) -> None:
        config = self.load(config_file(), "train.batch=50")
        assert config.resolved["train"]["batch"] == 50
        assert "batch: 10" in config.sources[0][1]

    @pytest.mark.parametrize(
        ("override", "expected"),
        [
            ("train.batch=abc", "-s train.batch=abc: train.batch must be a whole number"),
            ("train.batch.x=1", "-s train.batch.x=1: train.batch must be a whole number"),
            ("trian.batch=1", "-s trian.batch=1: unknown key 'trian'"),
            (
                "train.bacth=1",
                "-s train.bacth=1: unknown key 'bacth' in train [did you mean 'batch'?]",
            ),
            ("=", "an override is KEY=VALUE, got '='"),
            ("=1", "an override is KEY=VALUE"),
            ("train.batch", "an override is KEY=VALUE, got 'train.batch'"),
            ("train..batch=1", "an override is KEY=VALUE"),
            ("", "an override is KEY=VALUE"),
            ("train.best=", "'train.best' is given no value"),
            ("extends=other.yaml", "extends stands in a file, it cannot be overridden"),
            ("model.haed.out=1", "no layer of the model is named 'haed' [did you mean 'head'?]"),
            ("model=[]", "model must be a list of at least one layer, got an empty list"),
            ("expect={test.loss: 3}", '>= 0.97"}, got 3 for test.loss'),
            ("model.head=1", "a layer's fields are a map, got 1"),
            ("train.batch=[1", "-s train.batch=[1: YAML cannot be read here"),
            ("train.batch=017", "-s train.batch=017: 017 has a leading zero"),
            ("train.batch=!!int 1", "YAML tags are not allowed"),
        ],
    )
    def test_that_are_wrong(self, config_file: Write, override: str, expected: str) -> None:
        assert expected in messages(config_file(), override)

    def test_given_twice_are_refused(self, config_file: Write) -> None:
        found = messages(config_file(), "train.batch=1", "train.batch=2")
        assert "'train.batch' is overridden twice: 'train.batch=1' and 'train.batch=2'" in found


def test_options_that_do_not_go_together_are_told_at_their_key(config_file: Write) -> None:
    [found] = mistakes(config_file(("lr: 0.1", "lr: 0.1, weight_decay: 0.1, nesterov: true")))
    assert found.message == "optim (sgd): nesterov needs momentum above 0 and dampening 0"
    assert found.location is not None
    line = Path(found.location.file).read_text().splitlines()[found.location.line - 1]
    assert line[found.location.column - 1 :].startswith("nesterov")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[accuracy]", "[" + "1, " * 60_000 + "1]"),
        ("[accuracy]", "[" + "acuracy, " * 30_000 + "x]"),
        ("lr: 0.1", "lr: 0.1, " + ", ".join(f"momentun{i}: 1" for i in range(20_000))),
        ("- relu", "- {" + ", ".join(f"relu{i}: 1" for i in range(30_000)) + "}"),
        ("  - relu\n", "  - relo\n" * 9_000),
        ("loss:", "vars: {" +
         ", ".join(f"a{i}: $vars.a{i + 1}" for i in range(40_000)) + "}\nloss:"),
        ("loss:", "vars: {" + ", ".join(f"a{i}: 1" for i in range(30_000)) + "}\nloss:"),
        ("- relu", "- " + "residual: [" * 12 + "relu" + "]" * 12),
    ],
    ids=["numbers", "names", "keys", "map", "layers", "chain", "unused", "nested"],
)  # fmt: skip
def test_a_large_wrong_file_is_judged_soon(config_file: Write, old: str, new: str) -> None:
    import time

    start = time.process_time()
    try:
        config = load(config_file((old, new)))
        assert len(config.warnings) <= 51
    except ErrorGroup as group:
        assert 0 < len(group.errors) <= 60
    assert time.process_time() - start < 4
