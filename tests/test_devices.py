"""Names of devices: what may be written, in the library and behind --device."""

from __future__ import annotations

import pytest

from gradcli import devices, engine
from gradcli.cli import main
from gradcli.engine import nn, optim
from gradcli.errors import OptionError

RIGHT = {
    "cpu": ("cpu", 0),
    "cpu:0": ("cpu", 0),
    "cuda": ("cuda", 0),
    "cuda:0": ("cuda", 0),
    "cuda:1": ("cuda", 1),
    "cuda:17": ("cuda", 17),
    "metal": ("metal", 0),
    "metal:0": ("metal", 0),
}
NUMBER = "stands a number, counted from 0"
WRONG = {
    "": "there are cpu, cuda, metal",
    "gpu": "there are cpu, cuda, metal",
    "mps": "there are cpu, cuda, metal",
    " cuda": "there are cpu, cuda, metal",
    "0": "there are cpu, cuda, metal",
    ":1": "there are cpu, cuda, metal",
    "cuda:": NUMBER,
    "cuda:01": NUMBER,
    "cuda:-1": NUMBER,
    "cuda:+1": NUMBER,
    "cuda: 1": NUMBER,
    "cuda:1 ": NUMBER,
    "cuda:1\n": NUMBER,
    "cuda:1.0": NUMBER,
    "cuda:0x1": NUMBER,
    "cuda:1_0": NUMBER,
    "cuda:²": NUMBER,
    "cuda:٣": NUMBER,
    "cuda:1:1": NUMBER,
    "cuda:" + "9" * 5000: NUMBER,
    "metal:one": NUMBER,
    "cpu:": NUMBER,
    "cpu:1": "the CPU is one device, 'cpu'",
    "cuda:MIG-7a1c": "CUDA_VISIBLE_DEVICES=MIG-7a1c in the environment makes it 'cuda'",
    "cuda:GPU-7a1c": "CUDA_VISIBLE_DEVICES=GPU-7a1c in the environment makes it 'cuda'",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_name_says_what_computes_and_which_of_them(name: str) -> None:
    kind, index = devices.parsed(name, "to")
    assert (kind, index) == RIGHT[name]
    assert devices.parsed(devices.name_of(kind, index), "to") == (kind, index)
    assert devices.kind_of(name) == kind


@pytest.mark.parametrize("name", [*WRONG, "CUDA", "Cuda:1"])
def test_what_is_no_name_is_refused_in_a_sentence(name: str) -> None:
    expected = WRONG.get(name, "there are cpu, cuda, metal")
    x = engine.ones(2)
    optimizer = optim.SGD([x.clone().requires_grad_()], lr=0.1)
    for to in (x.to, nn.Linear(2, 2).to, nn.Sequential().to, optimizer.to):
        with pytest.raises(OptionError) as caught:
            to(name)
        said = caught.value.message
        assert said.startswith("to: no device ") and expected in said
        assert len(said) < 300


@pytest.mark.parametrize("name", [0, None, ["cuda"], 1.5])
def test_a_name_is_text(name: object) -> None:
    with pytest.raises(OptionError, match=r"to: a device is a name such as 'cpu' .*, got \w+"):
        optim.SGD([engine.ones(1).requires_grad_()], lr=0.1).to(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [["bench"], ["doctor"], ["gradcheck"], ["train", "x.yaml"]])
@pytest.mark.parametrize("name", [name for name in WRONG if name])
def test_every_command_refuses_them(
    name: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Letters may be capitals there, as those of other choices."""
    assert main.run([*command, "--device", name]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--device" in said.err and len(said.err) < 600
    if name.partition(":")[0] in devices.DEVICES:
        assert WRONG[name] in said.err
    else:
        assert (
            "is not one of " in said.err and ", cuda, metal; the second GPU is cuda:1" in said.err
        )


@pytest.mark.parametrize(
    ("index", "count", "expected"), [(1, 1, "1 GPU, number 0"), (7, 4, "4 GPUs, numbers 0 to 3")]
)
def test_a_number_that_is_too_high_is_told_how_many_there_are(
    index: int, count: int, expected: str
) -> None:
    said = devices.too_high(index, count, "NVIDIA's driver")
    assert said == f"there is no GPU {index}: NVIDIA's driver shows {expected}"
    assert devices.too_high(count - 1, count, "NVIDIA's driver") == ""
