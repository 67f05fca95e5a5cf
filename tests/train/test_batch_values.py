"""What batches give, as bytes between ranks, and in the order of the batches again."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.train.batch_values import interleave, pack, unpack


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.int64, engine.uint8])
def test_bytes_say_all(dtype: engine.DType) -> None:
    scores = engine.arange(6).reshape(2, 3).to(dtype)
    nothing = engine.zeros(2, 0, dtype=dtype)
    value = {"loss": scores[:, 1], "states": {"a": {"of": scores.T.T, "n": 3, "none": nothing}}}
    again = unpack(pack(value))
    assert again["states"]["a"]["n"] == 3
    assert again["loss"].tolist() == [1, 4]
    for key in ("of", "none"):
        tensor, other = value["states"]["a"][key], again["states"]["a"][key]
        assert (other.dtype, other.shape, other.tolist()) == (dtype, tensor.shape, tensor.tolist())


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rows_come_in_the_order_of_the_batches(ranks: int) -> None:
    rows = engine.arange(14).reshape(7, 2)
    values = [{"x": rows[i::ranks], "n": 2} for i in range(ranks)]
    found = interleave(values)
    assert found["x"].tolist() == rows.tolist()
    assert found["n"] == 2
