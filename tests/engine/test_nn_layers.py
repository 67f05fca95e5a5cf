"""Layers without torch: what they refuse, what they draw, and that a model of them learns."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.errors import OptionError, RangeError, ShapeError


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nn.Linear(-1, 2), "Linear: in_features must be a whole number >= 0, got -1"),
        (lambda: nn.Linear("3", 2), "Linear: in_features must be a whole number >= 0, got '3'"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups=2 must divide in_channels=3"),
        (lambda: nn.Conv2d(1, 1, 0), "Conv2d: kernel_size must be"),
        (lambda: nn.Conv2d(1, 1, 3, stride=(1, 2, 3)), "Conv2d: stride must be"),
        (lambda: nn.Conv2d(1, 1, 3, padding="full"), "padding must be 'same', 'valid'"),
        (lambda: nn.Conv2d(1, 1, 3, 2, "same"), "padding 'same' needs stride 1"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="wrap"), "padding_mode must be 'zeros' or 'refl"),
        (
            lambda: nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect"),
            "ConvTranspose2d: padding_mode must be 'zeros', got 'reflect'",
        ),
        (
            lambda: nn.ZeroPad2d((1, 2)),
            r"ZeroPad2d: padding is a number or 4 of them, got \(1, 2\)",
        ),
        (lambda: nn.Dropout(1.5), "Dropout: p must be a number from 0 to 1"),
        (lambda: nn.LSTM("3", 4), "LSTM: input_size must be a whole number >= 0, got '3'"),
        (lambda: nn.Dropout("half"), "Dropout: p must be a number from 0 to 1, got 'half'"),
        (lambda: nn.Conv1d("3", 4, 3), "Conv1d: in_channels must be a whole number >= 0, got '3'"),
        (
            lambda: nn.ConvTranspose2d(3, -4, 3),
            "ConvTranspose2d: out_channels must be a whole number >= 0, got -4",
        ),
        (lambda: nn.Dropout(inplace=True), "Dropout: inplace must be False"),
        (lambda: nn.ReLU(inplace=True), "ReLU: inplace must be False"),
        (lambda: nn.GELU("fast"), "GELU: approximate must be 'none' or 'tanh'"),
        (lambda: nn.Softmax()(engine.ones(2)), r"Softmax\(dim=-1\)"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), "padding_idx 3 is outside the 3 rows"),
        (lambda: nn.MSELoss(reduction="avg"), "MSELoss: reduction must be"),
        (lambda: nn.CrossEntropyLoss(reduction="avg"), "CrossEntropyLoss: reduction must be"),
        (lambda: nn.BatchNorm1d(3)(engine.zeros(1, 3)), "more than 1 value for each channel"),
        (lambda: nn.init.calculate_gain("swish"), "got 'swish'"),
        (lambda: nn.init.kaiming_uniform_(engine.zeros(2, 2), mode="in"), "mode must be"),
    ],
)
def test_impossible_options_are_refused(make, says):
    with pytest.raises(OptionError, match=says):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nn.BatchNorm2d(3)(engine.zeros(2, 4, 5, 5)), "BatchNorm2d: expects 4 dimensions"),
        (lambda: nn.BatchNorm1d(3)(engine.zeros(2, 3, 1, 1)), "BatchNorm1d: expects 2 or 3"),
        (lambda: nn.LayerNorm(3)(engine.zeros(2, 4)), "layer_norm: .* does not end in"),
        (lambda: nn.Linear(3, 2)(engine.zeros(2, 4)), "linear: "),
        (lambda: nn.init.xavier_uniform_(engine.zeros(3)), "2 or more dimensions"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make, says):
    with pytest.raises(ShapeError, match=says):
        make()


def test_an_index_outside_the_table_is_refused():
    with pytest.raises(RangeError, match=r"index 5 at position 1 is outside 0\.\.4"):
        nn.Embedding(5, 2)(engine.tensor([0, 5]))


def test_first_weights_stay_within_their_limits():
    engine.manual_seed(1)
    for layer, fan_in in ((nn.Linear(16, 40), 16), (nn.Conv2d(4, 8, 3), 36)):
        limit = fan_in**-0.5
        for parameter in layer.parameters():
            flat = parameter.detach().reshape(-1).tolist()
            assert max(map(abs, flat)) <= limit * (1 + 1e-6)
            assert len(set(flat)) == len(flat)
        assert max(flat := layer.weight.detach().reshape(-1).tolist()) > 0.9 * limit
        assert min(flat) < -0.9 * limit


def test_layers_without_inputs_have_finite_weights():
    layer = nn.Linear(0, 3)
    assert layer.weight.shape == (3, 0)
    assert layer(engine.zeros(2, 0)).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_constants_of_init():
    x = engine.empty(2, 2)
    assert nn.init.constant_(x, 3.5).tolist() == [[3.5, 3.5], [3.5, 3.5]]
    assert nn.init.ones_(x).tolist() == [[1, 1], [1, 1]]
    assert nn.init.zeros_(x).tolist() == [[0, 0], [0, 0]]
    parameter = nn.Parameter(x)
    assert nn.init.normal_(parameter, 2.0, 0.0) is parameter
    assert parameter.tolist() == [[2, 2], [2, 2]]


def test_a_generator_of_its_own_draws_the_same_again():
    a, b = engine.empty(8), engine.empty(8)
    nn.init.uniform_(a, -1, 1, engine.Generator(3))
    nn.init.uniform_(b, -1, 1, engine.Generator(3))
    assert a.tolist() == b.tolist()


def test_batch_norm_counts_batches_and_moves_by_momentum():
    norm = nn.BatchNorm1d(1, momentum=0.25)
    x = engine.tensor([[1.0], [3.0]])
    norm(x)
    assert norm.num_batches_tracked.item() == 1
    assert norm.running_mean.item() == pytest.approx(0.25 * 2)
    assert norm.running_var.item() == pytest.approx(0.75 + 0.25 * 2)
    norm.eval()(x)
    assert norm.num_batches_tracked.item() == 1
    norm.reset_parameters()
    assert (norm.running_mean.item(), norm.running_var.item()) == (0, 1)


def test_weights_of_a_loss_follow_the_model_to_another_type():
    loss = nn.CrossEntropyLoss(engine.tensor([1.0, 2.0])).double()
    assert loss.weight.dtype is engine.float64


def test_a_small_model_learns_the_same_way_twice():
    def train():
        engine.manual_seed(3)
        model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        x = engine.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        y = engine.tensor([0, 1, 1, 0])
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        criterion = nn.CrossEntropyLoss()
        for _ in range(100):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item(), model(x).argmax(1).tolist()

    loss, classes = train()
    assert loss < 0.05
    assert classes == [0, 1, 1, 0]
    assert train() == (loss, classes)
