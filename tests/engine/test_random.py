"""Random numbers: the published vectors, no hidden state, and the right distributions."""

from __future__ import annotations

import math

import pytest
from reference_index import WORD, philox, random_word

from gradcli import engine
from gradcli.engine import Generator
from gradcli.engine.device import cpu
from gradcli.engine.random import Draw, purpose_number
from gradcli.errors import AutogradError, DTypeError, OptionError


def test_the_reference_gives_the_published_vectors() -> None:
    zeros = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    pi = (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    assert philox(0, (0, 0, 0, 0)) == zeros
    assert philox((1 << 64) - 1, (WORD, WORD, WORD, WORD)) == ones
    pi_counter = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    assert philox(0x299F31D0A4093822, pi_counter) == pi


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (-1, 1), (0x123456789ABCDEF, 1 << 40)])
def test_rand_is_24_bits_of_the_words_that_seed_step_and_draw_name(
    seed: int, step: int, isa: str
) -> None:
    generator = Generator(seed, step=step)
    generator.next_draw()
    numbers = engine.rand(40_000, generator=generator).tolist()
    draw = Draw(generator.key, step, 1)
    for i in (0, 1, 63, 64, 255, 256, 16_383, 16_384, 39_999):
        assert numbers[i] == (random_word(draw, i) >> 8) * 2.0**-24


def test_a_draw_is_the_same_for_any_number_of_threads_and_any_length(isa: str) -> None:
    def draws(n: int) -> list[list[float]]:
        makers = (engine.rand, engine.randn)
        kinds = (engine.float32, engine.float64)
        made = [f(n, generator=Generator(3), dtype=d).tolist() for f in makers for d in kinds]
        return [*made, engine.randint(9, (n,), generator=Generator(3)).tolist()]

    before = cpu.threads()
    whole = draws(40_000)
    cpu.set_threads(3)
    assert draws(40_000) == whole
    cpu.set_threads(before)
    for n in (0, 1, 63, 129, 300, 16_385):
        assert draws(n) == [numbers[:n] for numbers in whole]


def test_seed_purpose_step_and_draw_each_change_the_numbers() -> None:
    names = [(1, ""), (2, ""), (1, "shuffle"), (1, "other")]
    generators = [*(Generator(seed, purpose) for seed, purpose in names), Generator(1, step=1)]
    first = [tuple(engine.rand(8, generator=g).tolist()) for g in generators]
    second = tuple(engine.rand(8, generator=generators[0]).tolist())
    assert len({*first, second}) == len(generators) + 1


def test_going_to_a_step_needs_no_steps_before_it() -> None:
    engine.manual_seed(5)
    engine.rand(10)
    engine.manual_seed(5, step=7)
    wanted = engine.rand(4).tolist()
    generator = Generator(5)
    generator.set_step(7)
    assert engine.rand(4, generator=generator).tolist() == wanted


def test_purposes_have_fixed_numbers() -> None:
    assert purpose_number("") == 0
    assert purpose_number("a") == 0xAF63DC4C8601EC8C  # the published FNV-1a of "a"


def moments(numbers: list[float]) -> tuple[float, float, float, float]:
    n = len(numbers)
    mean = math.fsum(numbers) / n
    central = [math.fsum((x - mean) ** k for x in numbers) / n for k in (2, 3, 4)]
    return (mean, *central)


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64], ids=str)
def test_randn_has_the_moments_of_the_normal_distribution(dtype: engine.DType, isa: str) -> None:
    found = moments(engine.randn(200_000, generator=Generator(1), dtype=dtype).tolist())
    assert found == pytest.approx((0, 1, 0, 3), abs=0.05)


def test_randn_is_box_muller_of_the_uniform_numbers(isa: str) -> None:
    u = engine.rand(256, generator=Generator(4)).tolist()
    z = engine.randn(256, generator=Generator(4)).tolist()
    for i in (*range(64), *range(128, 192)):
        radius = math.sqrt(-2 * math.log(1 - u[i]))
        turn = 2 * math.pi * u[i + 64]
        pair = (radius * math.cos(turn), radius * math.sin(turn))
        assert (z[i], z[i + 64]) == pytest.approx(pair, abs=1e-6)


def test_rand_has_the_moments_of_the_uniform_distribution() -> None:
    found = moments(engine.rand(200_000, generator=Generator(1)).tolist())
    assert found == pytest.approx((1 / 2, 1 / 12, 0, 1 / 80), abs=0.005)


def test_randint_reaches_all_numbers_of_its_range_and_no_other() -> None:
    numbers = engine.randint(-3, 4, (70_000,), generator=Generator(1)).tolist()
    counts = [numbers.count(k) for k in range(-3, 4)]
    assert sum(counts) == 70_000
    assert all(abs(count - 10_000) < 500 for count in counts)
    extreme = engine.randint(-(1 << 63), (1 << 63) - 1, (100,), generator=Generator(1))
    assert any(x < -(1 << 62) for x in extreme.tolist())


def test_randperm_is_an_order_and_each_order_is_as_likely() -> None:
    assert sorted(engine.randperm(1000, generator=Generator(2)).tolist()) == list(range(1000))
    assert engine.randperm(0).tolist() == []
    orders = [tuple(engine.randperm(3, generator=Generator(s)).tolist()) for s in range(3000)]
    assert len(set(orders)) == 6
    assert all(abs(orders.count(order) - 500) < 100 for order in set(orders))


def test_dropout_keeps_the_share_it_says_and_the_mean() -> None:
    y = engine.dropout(engine.ones(100_000), p=0.3, draw=Draw(1, 2, 3)).tolist()
    kept = [v for v in y if v]
    assert abs(len(kept) / len(y) - 0.7) < 0.005
    assert set(kept) == {engine.tensor(1 / 0.7).item()}


def test_two_dropouts_of_a_step_differ_and_a_repeated_step_repeats_them() -> None:
    def masks() -> list[list[float]]:
        engine.manual_seed(1, step=9)
        return [engine.dropout(engine.ones(64)).tolist() for _ in range(2)]

    first = masks()
    assert first[0] != first[1]
    assert masks() == first


def test_float32_and_float64_drop_the_same_elements() -> None:
    single = engine.dropout(engine.ones(1000), draw=Draw(1, 2, 3))
    double = engine.dropout(engine.ones(1000, dtype=engine.float64), draw=Draw(1, 2, 3))
    assert single.tolist() == double.tolist()


def test_dropout_of_nothing_and_of_everything() -> None:
    x = engine.ones(500)
    assert engine.dropout(x, p=0.0).tolist() == [1.0] * 500
    assert engine.dropout(x, p=1.0).tolist() == [0.0] * 500
    assert engine.dropout(x, p=0.9, training=False).tolist() == [1.0] * 500


def test_in_place_fills_write_every_element_of_a_view() -> None:
    x = engine.zeros(4, 6)
    x[:, ::2].uniform_(2, 3, generator=Generator(1))
    assert all(2 <= v < 3 for row in x[:, ::2].tolist() for v in row)
    assert x[:, 1::2].tolist() == [[0.0] * 3] * 4
    y = engine.zeros(10_000).normal_(5, 0.1, generator=Generator(1))
    assert moments(y.tolist())[:2] == pytest.approx((5, 0.01), abs=0.005)


def test_uniform_never_reaches_its_upper_end() -> None:
    high = 1 + 2.0**-23  # the only float32 above 1 here, so that rounding would often give it
    assert set(engine.zeros(1000).uniform_(1, high).tolist()) == {1.0}


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DTypeError, match="draws float32, float64 or bfloat16"):
        engine.rand(3, dtype=engine.int64)
    with pytest.raises(OptionError, match="needs low < high"):
        engine.randint(3, 3, (2,))
    with pytest.raises(OptionError, match="a tuple as size"):
        engine.randint(3, 4)
    with pytest.raises(OptionError, match="std must be at least 0"):
        engine.zeros(3).normal_(0, -1)
    with pytest.raises(OptionError, match="seed must be a whole number"):
        Generator(0.5)  # type: ignore[arg-type]
    with pytest.raises(AutogradError, match="do it under"):
        engine.zeros(3, requires_grad=True).uniform_()
