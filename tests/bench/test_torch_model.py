"""The translation to PyTorch computes what our model does; what has none is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planning import planned

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from gradcli import engine  # noqa: E402
from gradcli.bench import torch_model  # noqa: E402
from gradcli.bench.compare_torch import Rival  # noqa: E402
from gradcli.bench.step import TrainingSteps, batch_size  # noqa: E402
from gradcli.config import build, load, modules  # noqa: E402
from gradcli.config.losses import LOSSES  # noqa: E402
from gradcli.config.modules import Parallel, Residual  # noqa: E402
from gradcli.config.planned import build as build_layer  # noqa: E402
from gradcli.config.tensor_spec import TensorSpec  # noqa: E402
from gradcli.engine import nn, optim  # noqa: E402
from gradcli.engine.nn.hooks import recompute  # noqa: E402
from gradcli.errors import ConfigError  # noqa: E402

pytestmark = pytest.mark.parity
CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def with_last(layer: Any) -> Any:
    layer.last = True
    return layer


PLAIN = (
    "ReLU ReLU6 SELU SiLU Mish Softsign Hardswish Hardsigmoid Tanh Tanhshrink Sigmoid LogSigmoid "
    "Identity"
)

MODELS = {
    "images": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1, stride=2, bias=False),
            nn.BatchNorm2d(4),
            Residual(nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.GELU(approximate="tanh")),
            nn.MaxPool2d(2),
            nn.AvgPool2d(2, padding=1),
            nn.Flatten(),
            nn.Linear(16, 3),
        ),
        (5, 2, 8, 8),
    ),
    "branches": (
        nn.Sequential(
            Residual(nn.Linear(6, 4), nn.Tanh(), shortcut=nn.Sequential(nn.Linear(6, 4))),
            Parallel(nn.Sequential(nn.Linear(4, 3)), nn.Sequential(), dim=-1),
            Parallel(nn.Sequential(nn.Linear(7, 7)), nn.Sequential(), join="add"),
        ),
        (5, 6),
    ),
    "lines": (
        nn.Sequential(
            nn.Conv1d(2, 4, 3, padding=1, bias=False),
            nn.MaxPool1d(2),
            nn.ConvTranspose1d(4, 3, 3, stride=2, output_padding=1),
            nn.AvgPool1d(3, padding=1),
        ),
        (5, 2, 8),
    ),
    "norms": (
        nn.Sequential(
            nn.GroupNorm(2, 6),
            nn.InstanceNorm1d(6, affine=True),
            nn.Dropout1d(0.0),
            nn.RMSNorm(5),
            nn.Flatten(),
            nn.Unflatten(1, (3, 2, 5)),
            nn.InstanceNorm2d(3),
            nn.Dropout2d(0.0),
            nn.RMSNorm((3, 2, 5), eps=1e-6),
        ),
        (4, 6, 5),
    ),
    "activations": (
        nn.Sequential(
            *(getattr(nn, name)() for name in PLAIN.split()),
            nn.LeakyReLU(0.2),
            nn.PReLU(6, init=0.3),
            nn.ELU(0.5),
            nn.CELU(0.7),
            nn.Softplus(2.0, 5.0),
            nn.Hardtanh(-0.5, 0.9),
            nn.Threshold(-0.2, -0.1),
            nn.ReLUSquared(),
            nn.SoftCap(1.5),
            nn.SwiGLU(1),
            nn.GLU(),
            nn.LogSoftmax(-1),
            nn.Softmin(1),
        ),
        (4, 6, 4),
    ),
    "other sizes": (
        nn.Sequential(
            nn.AdaptiveAvgPool2d((6, None)),
            nn.Upsample(scale_factor=1.5),
            nn.AdaptiveMaxPool2d((4, 6)),
            nn.Upsample(size=(5, 4), mode="bilinear", align_corners=True),
            nn.PixelShuffle(2),
            nn.PixelUnshuffle(2),
            nn.Flatten(2),
            nn.AdaptiveMaxPool1d(9),
            nn.AdaptiveAvgPool1d(4),
        ),
        (5, 4, 8, 7),
    ),
    "borders": (
        nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.ConstantPad2d((1, 0, 2, 1), 0.5),
            nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"),
            nn.ZeroPad2d((0, 1, 0, 0)),
            nn.Flatten(2),
            nn.ReplicationPad1d((2, 1)),
        ),
        (3, 2, 5, 4),
    ),
    "larger images": (nn.ConvTranspose2d(4, 2, (1, 3), stride=2, groups=2), (5, 4, 3, 4)),
    "rows": (
        nn.Sequential(
            nn.Linear(6, 4, bias=False),
            nn.BatchNorm1d(4),
            nn.LayerNorm(4),
            nn.Tanh(),
            nn.Sequential(nn.Sigmoid(), nn.ReLU()),
            nn.Dropout(0.0),
            nn.Softmax(dim=-1),
        ),
        (5, 6),
    ),
    "states": (
        nn.Sequential(
            modules.LSTMStates(3, 4, batch_first=True), modules.GRUStates(4, 5, batch_first=True)
        ),
        (2, 7, 3),
    ),
    "last state": (
        nn.Sequential(
            modules.RNNStates(3, 4, nonlinearity="relu", batch_first=True, bias=False),
            with_last(modules.LSTMStates(4, 5, num_layers=2, bidirectional=True, batch_first=True)),
        ),
        (2, 7, 3),
    ),
}


MODELS |= {
    "transformers": (
        nn.Sequential(
            nn.Positions(9, 12),
            nn.TransformerBlock(nn.SelfAttention(12, 3), 20, "gelu_tanh"),
            nn.TransformerBlock(
                nn.SelfAttention(12, 3, 1, rotary_steps=9, bias=False), 7, "relu", False, bias=False
            ),
            nn.TransformerBlock(nn.SelfAttention(12, 3), 7, "swiglu", norm_kind="rms"),
            nn.TransformerBlock(
                nn.SelfAttention(12, 3), 7, "relusquared", False, norm_kind="layer_plain"
            ),
            nn.SelfAttention(12, 4, causal=False),
            nn.SelfAttention(
                12, 3, 1, rotary_steps=9, rotary_base=50.0, rotary_form="half", softcap=0.7
            ),
            nn.SelfAttention(12, 3, qk_norm="rms", head_dim=6, window=3, qkv_bias=True, bias=False),
            nn.SelfAttention(12, 6, 3, qk_norm="rms_plain", alibi=True, window=4, softcap=1.5),
            nn.SelfAttention(12, 3, alibi=True, causal=False),
            nn.LoRALinear(nn.Linear(12, 12), 3, 6.0),
        ),
        (2, 7, 12),
    ),
}


def job_of(model: nn.Module, loss: Any = "mse", **more: Any) -> Any:
    return SimpleNamespace(model=model, loss=None, resolved={"loss": loss}, **more)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_and_its_translation_agree(name: str) -> None:
    model, shape = MODELS[name]
    theirs = torch_model.model(torch, job_of(model), model.state_dict())
    assert theirs.training
    x = engine.randn(*shape)
    expected = torch.from_dlpack(model(x).detach())
    found = theirs(torch_model.as_torch(torch, x))
    assert (found - expected).abs().max().item() < 1e-5


@pytest.mark.parametrize(
    ("layer", "torch_layer"),
    [
        ({"conv": {"out": 4, "kernel": 3, "padding": 1, "padding_mode": "reflect"}}, "Conv2d"),
        ({"max_pool": {"kernel": 3, "stride": 2, "ceil_mode": True}}, "MaxPool2d"),
        ({"max_pool": {"kernel": 2, "stride": 1, "dilation": 2}}, "MaxPool2d"),
        ({"avg_pool": {"kernel": 2, "padding": 1, "count_include_pad": False}}, "AvgPool2d"),
        ({"avg_pool": {"kernel": 4, "stride": 3, "ceil_mode": True}}, "AvgPool2d"),
        ({"batch_norm": {"affine": False}}, "BatchNorm2d"),
        ({"layer_norm": {"bias": False}}, "LayerNorm"),
        ({"layer_norm": {"affine": False}}, "LayerNorm"),
        ({"group_norm": {"groups": 2, "affine": False}}, "GroupNorm"),
        ({"rms_norm": {"affine": False}}, "RMSNorm"),
    ],
)
def test_a_layer_has_the_options_of_pytorchs(layer: dict[str, Any], torch_layer: str) -> None:
    [plan] = planned(TensorSpec((4, 6, 8)), layer)
    model = nn.Sequential(build_layer(plan))
    theirs = torch_model.model(torch, job_of(model), model.state_dict())
    assert type(theirs[0]) is getattr(torch.nn, torch_layer)
    assert sum(p.numel() for p in theirs.parameters()) == plan.parameters
    x = engine.randn(5, 4, 6, 8)
    ours, expected = model(x), theirs(torch_model.as_torch(torch, x))
    assert ours.shape[1:] == plan.output.shape
    assert (torch.from_dlpack(ours.detach()) - expected).abs().max().item() < 1e-5


def test_what_is_computed_again_is_so_in_pytorch_too() -> None:
    def pair() -> nn.Sequential:
        return nn.Sequential(nn.Linear(6, 6), nn.Tanh())

    model = nn.Sequential(pair(), nn.Sequential(*pair(), *pair()), nn.Linear(6, 1))
    recompute(model[0])
    recompute(model[1], 2)
    theirs = torch_model.model(torch, job_of(model), model.state_dict())
    runs: list[int] = []
    for number, layer in enumerate((theirs[0][0], theirs[1][0], theirs[1][2])):
        layer.register_forward_hook(lambda *_, number=number: runs.append(number))
    x = engine.randn(4, 6)
    theirs(torch_model.as_torch(torch, x)).sum().backward()
    model(x).sum().backward()
    assert sorted(runs) == [0, 0, 1, 1, 2]  # the last part keeps what it computes
    for ours, other in zip(model.parameters(), theirs.parameters(), strict=True):
        assert (torch.from_dlpack(ours.grad) - other.grad).abs().max().item() < 1e-5


def test_an_embedding_takes_its_rows() -> None:
    model = nn.Sequential(nn.Embedding(7, 3))
    theirs = torch_model.model(torch, job_of(model), model.state_dict())
    rows = engine.tensor([[1, 6], [0, 0]])
    assert theirs(torch_model.as_torch(torch, rows)).tolist() == model(rows).tolist()


def test_weights_are_copies() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    theirs = torch_model.model(torch, job_of(model), model.state_dict())
    before = model[0].weight.tolist()
    with torch.no_grad():
        theirs[0].weight.zero_()
    assert model[0].weight.tolist() == before


def test_a_shared_weight_is_shared() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    theirs = torch_model.model(torch, job_of(model), model.state_dict())
    assert theirs[1].weight is theirs[0].weight
    assert theirs[1].weight.tolist() == model[0].weight.tolist()


def test_groups_keep_their_parameters_and_options() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    groups = [
        {"params": [model[1].weight], "lr": 0.5},
        {"params": [model[0].bias, model[0].weight], "weight_decay": 0.25},
    ]
    job = job_of(model, optimizer=optim.AdamW(groups, lr=0.1, betas=(0.8, 0.9)))
    theirs = torch_model.model(torch, job, model.state_dict())
    made = torch_model.optimizer(torch, job, theirs)
    assert type(made) is torch.optim.AdamW
    first, second = made.param_groups
    assert first["params"][0] is theirs[1].weight
    assert [id(p) for p in second["params"]] == [id(theirs[0].bias), id(theirs[0].weight)]
    assert (first["lr"], second["lr"], second["weight_decay"]) == (0.5, 0.1, 0.25)
    assert first["betas"] == (0.8, 0.9)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["train.clip=0.1", "loss={name: cross_entropy, label_smoothing: 0.1}"],
        ["train.micro_batch=10", "optim={name: sgd, lr: 0.1, momentum: 0.9, nesterov: true}"],
    ],
)
def test_a_training_of_a_config_stays_beside_ours(overrides: list[str]) -> None:
    constant = ["schedule={name: constant}", *overrides]
    job = build(load(CONFIGS / "penguins.yaml", constant))
    start = {name: tensor.clone() for name, tensor in job.model.state_dict().items()}
    ours, theirs = TrainingSteps(job, captured=False), Rival(torch, job, start, compiled=False)
    whole = job.dataset.splits["train"].size // batch_size(job)
    for _ in range(min(whole, 5)):
        assert ours.run(1) == pytest.approx(theirs.run(1), rel=1e-4)


def test_scaled_targets_are_scaled_in_pytorch_too(tmp_path: Path) -> None:
    rows = "".join(f"{i % 7},{i % 5},{9000 + 100 * (i % 11)}\n" for i in range(100))
    (tmp_path / "t.csv").write_text(f"a,b,y\n{rows}")
    (tmp_path / "t.yaml").write_text(
        "gradcli: 1\n"
        "data: {name: csv, file: t.csv, target: y, task: regression, numeric: [a, b]}\n"
        "model: [linear: 4, tanh, linear: 1]\nloss: mse\noptim: {name: sgd, lr: 0.1}\n"
        "train: {epochs: 1, batch: 20}\n"
    )
    job = build(load(tmp_path / "t.yaml"))
    start = {name: tensor.clone() for name, tensor in job.model.state_dict().items()}
    ours, theirs = TrainingSteps(job, captured=False), Rival(torch, job, start, compiled=False)
    for _ in range(4):
        assert ours.run(1) == pytest.approx(theirs.run(1), rel=1e-4)


WEIGHTS = [2.0, 0.5, 1.0]
OF_LOSSES = [
    {"name": "cross_entropy", "weight": WEIGHTS, "label_smoothing": 0.1},
    {"name": "nll", "weight": []},
    {"name": "mse"},
    {"name": "l1"},
    {"name": "smooth_l1", "beta": 0.3},
    {"name": "huber", "delta": 0.3},
    {"name": "bce"},
    {"name": "bce_with_logits", "pos_weight": 3.0},
    {"name": "bce_with_logits", "pos_weight": WEIGHTS},
    {"name": "kl", "log_target": False, "reduction": "batchmean"},
    {"name": "poisson_nll", "log_input": False, "full": True, "eps": 1e-3},
]


@pytest.mark.parametrize("chosen", OF_LOSSES, ids=str)
def test_a_loss_and_its_translation_agree(chosen: dict[str, Any]) -> None:
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in chosen.items()}
    ours = LOSSES[options.pop("name")](**options).make()
    theirs = torch_model.loss(torch, job_of(nn.Sequential(), loss=chosen))
    outputs = engine.rand(5, 3)
    labels = chosen["name"] in ("cross_entropy", "nll")
    targets = engine.tensor([0, 2, 1, 1, 0]) if labels else engine.rand(5, 3)
    given = (torch_model.as_torch(torch, x) for x in (outputs, targets))
    assert ours(outputs, targets).item() == pytest.approx(theirs(*given).item(), rel=1e-5)


def test_every_loss_has_a_translation() -> None:
    assert set(torch_model.LOSSES) == set(LOSSES) == {one["name"] for one in OF_LOSSES}


def test_what_has_no_translation_is_named() -> None:
    class Strange(nn.Module):
        pass

    with pytest.raises(ConfigError, match="no translation of Strange to PyTorch"):
        torch_model.model(torch, job_of(nn.Sequential(Strange())), {})
    with pytest.raises(ConfigError, match="no translation of the loss 'odd'"):
        torch_model.loss(torch, SimpleNamespace(resolved={"loss": "odd"}))  # type: ignore[arg-type]
    model = nn.Linear(2, 2)
    lion = job_of(model, optimizer=optim.Lion(model.parameters()))
    with pytest.raises(ConfigError, match="PyTorch has no optimizer Lion"):
        torch_model.optimizer(torch, lion, torch.nn.Linear(2, 2))
