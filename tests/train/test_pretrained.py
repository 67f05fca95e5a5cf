"""First weights from a file: what is taken, what is refused, what a resume needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import Falling, go_on, tiny_job, train

from gradcli import engine
from gradcli.config import build, load
from gradcli.engine import nn
from gradcli.engine.nn.lora import add_lora
from gradcli.errors import CheckpointError, ErrorGroup
from gradcli.train.job import Ema
from gradcli.train.pretrained import take_over
from gradcli.train.safetensors_file import RawTensor, encode_header, layout
from gradcli.train.state import bytes_of, dtype_name


def write(path: Path, tensors: dict[str, engine.Tensor]) -> Path:
    stored = {
        name: RawTensor(dtype_name(one), tuple(one.shape), bytes_of(one))
        for name, one in tensors.items()
    }
    bodies = [bytes(stored[name].data) for name in layout(stored)]
    path.write_bytes(b"".join([encode_header(stored, {}), *bodies]))
    return path


def test_named_weights_are_taken_and_the_others_stay(tmp_path: Path) -> None:
    model, other = (nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)) for _ in range(2))
    file = write(tmp_path / "a.safetensors", dict(other.state_dict()))
    before = model.state_dict()["1.weight"].tolist()
    said = take_over(model, file, {"0.weight", "0.bias"})
    assert said == f"2 weights begin as in {file}"
    assert model.state_dict()["0.weight"].tolist() == other.state_dict()["0.weight"].tolist()
    assert model.state_dict()["1.weight"].tolist() == before


def test_weights_in_bfloat16_are_written_and_taken_by_float32(tmp_path: Path) -> None:
    model, other = nn.Linear(2, 3), nn.Linear(2, 3).bfloat16()
    file = write(tmp_path / "a.safetensors", dict(other.state_dict()))
    assert file.stat().st_size % 8 == (2 * 9) % 8
    take_over(model, file, {"weight", "bias"})
    assert model.weight.dtype is engine.float32
    assert model.weight.tolist() == other.weight.tolist()
    assert model.weight.bfloat16().tolist() == other.weight.tolist()


def test_a_checkpoint_gives_its_average(tmp_path: Path) -> None:
    run = Path(train(tmp_path, tiny_job(settings={"ema": Ema(0.5)})).run)
    [file] = list((run / "checkpoints").glob("*18.safetensors"))
    model = tiny_job().model
    take_over(model, file, set(model.state_dict()))
    from gradcli.train.checkpoint import read

    assert bytes(bytes_of(model.state_dict()["0.weight"])) == bytes(
        read(file).tensors["ema.0.weight"].data
    )


def test_what_does_not_fit_is_named_and_nothing_is_copied(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    before = [p.tolist() for p in model.parameters()]
    tensors = {"0.weight": engine.ones(3, 2), "0.bais": engine.ones(3), "1.bias": engine.ones(5)}
    file = write(tmp_path / "a.safetensors", tensors)
    with pytest.raises(CheckpointError, match="2 of 3 weights do not come from") as caught:
        take_over(model, file, {"0.weight", "0.bias", "1.bias"})
    told = " ".join([caught.value.message, *caught.value.notes])
    assert "0.bias F32[3] is not in it; did you mean '0.bais'?" in told
    assert "1.bias is F32[5] in it, F32[4] in the model" in told
    assert [p.tolist() for p in model.parameters()] == before


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot read .*none.safetensors"):
        take_over(nn.Linear(1, 1), tmp_path / "none.safetensors", {"weight"})


def test_only_a_new_run_takes_them(tmp_path: Path) -> None:
    calls = []

    def begin() -> str:
        calls.append(1)
        return "taken"

    job = tiny_job(begin=begin, schedule=Falling(total=18))
    run = train(tmp_path, job, max_steps=4).run
    assert calls == [1]
    assert go_on(run, replace(tiny_job(), begin=begin)).steps == 18
    assert calls == [1]


@pytest.fixture
def job(config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    from gradcli.data import DATASETS, LoadedData

    config_file()
    monkeypatch.setattr(
        DATASETS["fake"], "load", lambda self: LoadedData(self, self.facts(), {}, {})
    )

    def make(section: str) -> object:
        return build(load(config_file(("loss:", f"pretrained: {section}\nloss:"))))

    return make


def test_a_config_takes_layers_by_pattern(job, tmp_path: Path) -> None:
    tensors = {"3.weight": engine.full((10, 16), 2.0), "3.bias": engine.zeros(10)}
    write(tmp_path / "w.safetensors", tensors)
    made = job("{from: w.safetensors, layers: [head]}")
    assert "2 weights" in made.begin()
    assert made.model.state_dict()["3.weight"].tolist()[9][15] == 2.0
    assert made.resolved["pretrained"]["layers"] == ["head"]
    with pytest.raises(CheckpointError, match="2 of 4 weights do not come from"):
        job("{from: w.safetensors}").begin()
    with pytest.raises(ErrorGroup, match=r"pretrained.layers: 'haed' .*did you mean 'head'"):
        job("{from: w.safetensors, layers: [haed]}")


def test_a_missing_file_is_an_error_at_its_key(config_file) -> None:
    path = config_file(("loss:", "pretrained: {from: none.safetensors}\nloss:"))
    with pytest.raises(
        ErrorGroup, match=r"there is no file .*none.safetensors, and no run"
    ) as caught:
        load(path)
    [error] = caught.value.errors
    line = path.read_text().splitlines().index("pretrained: {from: none.safetensors}") + 1
    assert (error.code, error.exit_code) == ("E707", 7)
    assert error.location is not None
    assert (error.location.line, error.location.column) == (line, len("pretrained: {from: ") + 1)
    assert "RUN@best" in error.notes[0]


def test_a_run_that_has_begun_needs_it_no_more(config_file) -> None:
    path = config_file(("loss:", "pretrained: {from: none.safetensors}\nloss:"))
    config = load(path, runs=None)
    assert config.warnings == ()
    assert config.resolved["pretrained"]["from"] == str(path.parent / "none.safetensors")


def test_a_missing_key_is_an_error(config_file) -> None:
    with pytest.raises(ErrorGroup, match=r"pretrained.from is missing"):
        load(config_file(("loss:", "pretrained: {layers: [head]}\nloss:")))


def test_a_file_without_an_optimizer_gives_no_state(job, tmp_path: Path) -> None:
    tensors = {"3.weight": engine.full((10, 16), 2.0), "3.bias": engine.zeros(10)}
    write(tmp_path / "w.safetensors", tensors)
    made = job("{from: w.safetensors, layers: [head], optimizer: true}")
    with pytest.raises(CheckpointError, match="it is no checkpoint of gradcli"):
        made.begin()
    assert made.model.state_dict()["3.weight"].tolist()[9][15] != 2.0


def adapted(alpha: float = 4.0, rank: int = 2) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4))
    add_lora(model, ["2"], rank, alpha, 0.0)
    return model


def test_adapters_are_taken_where_the_file_has_them_and_begin_anew_otherwise(
    tmp_path: Path,
) -> None:
    plain, trained, model = nn.Sequential(*adapted()), adapted(), adapted()
    nn.merge_lora(plain)
    nn.init.normal_(trained.get_parameter("2.lora_B"))
    names = set(model.state_dict())
    file = write(tmp_path / "plain.safetensors", dict(plain.state_dict()))
    before = model.state_dict()["2.lora_A"].tolist()
    assert take_over(model, file, names) == f"4 weights begin as in {file}"
    assert model.state_dict()["2.lora_A"].tolist() == before
    file = write(tmp_path / "adapted.safetensors", dict(trained.state_dict()))
    assert take_over(model, file, names) == f"6 weights begin as in {file}"
    for name, tensor in trained.state_dict().items():
        assert engine.equal(model.state_dict()[name], tensor)
    with pytest.raises(CheckpointError, match=r"lora beside 1 layer, such as 2, where the model"):
        take_over(plain, file, set(plain.state_dict()))
    assert take_over(plain, file, {"0.weight", "0.bias"}) == f"2 weights begin as in {file}"
    with pytest.raises(CheckpointError, match=r"2.lora_A is F32\[2, 3\] in it, F32\[5, 3\]"):
        take_over(adapted(rank=5), file, names)
