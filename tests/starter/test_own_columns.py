"""`init` on any table: one sentence, or a config that `check` accepts without a warning."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradcli.config import load
from gradcli.errors import GradcliError
from gradcli.starter.writing import draft, load_draft, write

WORDS = [
    "",
    "NA",
    "nan",
    "yes",
    "no",
    "1",
    "2.5",
    "-3e7",
    "1e39",
    "$1,234",
    "$data.classes",
    "~",
    "#x",
]
names = st.sampled_from(["id", "a", "b", "y", "target", "$x", "a: b", "null", "017", ""]) | st.text(
    max_size=6
)
plain_cells = st.sampled_from(WORDS) | st.integers(-9, 9).map(str) | st.text(max_size=4)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Columns of different kinds, as the csv module writes them."""
    header = draw(st.lists(names, min_size=1, max_size=5))
    pools = [draw(st.lists(plain_cells, min_size=1, max_size=4)) for _ in header]
    count = draw(st.integers(0, 60))
    mixed = draw(st.randoms(use_true_random=False))
    rows = [[mixed.choice(pool) for pool in pools] for _ in range(count)]
    text = io.StringIO()
    csv.writer(text, delimiter=draw(st.sampled_from(",;\t|"))).writerows([header, *rows])
    return text.getvalue().encode("utf-8", "replace")


def outcome(content: bytes) -> str:
    """What `init` does with a table: the sentence of its refusal, or the config."""
    with TemporaryDirectory() as folder:
        source, out = Path(folder, "own.csv"), Path(folder, "own.yaml")
        source.write_bytes(content)
        try:
            write(draft(source, out.parent, None).text(), out)
            assert load_draft(out, source).warnings == ()
        except GradcliError as error:
            assert error.message and "\n" not in error.message
            assert not out.exists()
            return error.message
        assert load(out).facts.sizes.keys() >= {"train", "val"}
        return out.read_text(encoding="utf-8")


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(tables())
def test_any_table_is_refused_or_trains(content: bytes) -> None:
    assert "no config for it can be written" not in outcome(content)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300) | st.text(alphabet='a1,;"\n\r\t\0é', max_size=200).map(str.encode))
def test_any_bytes_are_refused_or_train(content: bytes) -> None:
    assert outcome(content)


def test_odd_names_are_quoted_and_odd_numbers_kept_apart(tmp_path: Path) -> None:
    header = ["$x", "a: b", "null", "017", "é ü", "no", "#", "[z", "", "y"]
    rows = [[str(i * (j + 1) % 11) for j in range(9)] + [str(i % 2)] for i in range(60)]
    text = "\n".join(",".join(row) for row in [header, *rows])
    written = outcome(text.encode())
    place = tmp_path / "own.yaml"
    place.write_text(written, encoding="utf-8")
    (tmp_path / "own.csv").write_text(text, encoding="utf-8")
    config = load(place)
    assert list(config.data.numeric) == header[:-1]  # type: ignore[attr-defined]
