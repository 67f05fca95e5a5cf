"""Arrays of NumPy's formats: read as NumPy wrote them, refused in a sentence otherwise."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import npy
from gradcli.data.array_files import tensor
from gradcli.data.npy_source import NpySource
from gradcli.data.npz_source import NpzSource
from gradcli.errors import ConfigError, DataError

numpy = pytest.importorskip("numpy")

PIXELS = (numpy.arange(6 * 4 * 5) * 7 % 256).astype("u1").reshape(6, 4, 5)
KINDS = ["?", "i1", "u1", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]
KINDS += [order + kind for order in "<>" for kind in ("i2", "u2", "i4", "u4", "i8", "u8")]
LABELS = numpy.array([0, 2, 1, 1, 0, 2])


def saved(array: Any, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    numpy.lib.format.write_array(file, array, version=version, allow_pickle=True)
    return file.getvalue()


def given(folder: Path, **options: Any) -> NpySource:
    arrays = {"x": PIXELS, "y": LABELS, **options.pop("arrays", {})}
    for name, array in arrays.items():
        numpy.save(folder / f"{name}.npy", array)
    return NpySource(**{"inputs": "x.npy", "targets": "y.npy", **options}).locate(folder)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 4), (0, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_that_numpy_wrote(kind: str, shape: tuple[int, ...], order: Any) -> None:
    count = int(numpy.prod(shape))
    array = numpy.asarray(numpy.arange(count) * 5 % 7 - (3 if set(kind) & set("if") else 0))
    array = numpy.asarray(array.reshape(shape).astype(kind), order=order)
    for version in ((1, 0), (2, 0), (3, 0)):
        found = npy.parse(saved(array, version), "f")
        assert found.header.shape == shape
        assert tensor(found, "f").tolist() == array.astype("f8").tolist()


def test_halves_are_exact() -> None:
    array = numpy.array([0.1, -65504.0, 6e-8, -0.0], dtype="f2")
    assert tensor(npy.parse(saved(array), "f"), "f").tolist() == array.tolist()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (numpy.array([{}, 1], dtype=object), "f: it holds Python objects, which only pickle"),
        (numpy.zeros(2, dtype="c8"), "f: its type is '<c8'; read are bool, int8"),
        (numpy.zeros(2, dtype="U3"), "it holds texts; save their numbers, numpy.unique("),
        (numpy.zeros(2, dtype="S3"), "it holds texts; save their numbers, numpy.unique("),
        (numpy.zeros(2, dtype=[("a", "f4")]), "it holds records of several fields"),
        (numpy.zeros([1] * 9), "it has 9 dimensions; at most 8"),
        (numpy.array([2**63], dtype="u8"), "its number 9223372036854775808 is beyond int64"),
    ],
)
def test_what_is_no_plain_number_is_refused(array: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        npy.parse(saved(array), "f")
    assert message in caught.value.message


def header(text: str, numbers: bytes = b"") -> bytes:
    return npy.MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text.encode() + numbers


GOOD = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must begin with 93 4e 55 4d 50 59"),
        (header(GOOD, bytes(4))[:9], "version 01 00"),
        (header(GOOD).replace(b"\1\0", b"\4\0", 1), "version 04 00 of .npy; 1.0, 2.0 and 3.0"),
        (header(GOOD)[:40], "its header of 58 bytes is cut off"),
        (header(GOOD, bytes(3)), "expected 72 bytes from the header (int16 2), got 71"),
        (header(GOOD, bytes(5)), "expected 72 bytes from the header (int16 2), got 73"),
        (header(GOOD.replace("(2,)", "(-2,)")), "is no dict"),
        (header(GOOD.replace("(2,)", "(2 2)")), "no tuple of whole numbers"),
        (header(GOOD.replace("(2,)", "'a'")), "no tuple of whole numbers"),
        (header(GOOD.replace("(2,)", "(2)")), "no tuple of whole numbers"),
        (header(GOOD.replace("(2,)", "(02,)")), "no tuple of whole numbers"),
        *((header(GOOD.replace("(2,)", f"(2{c},)")), "is no dict") for c in "\x0b\x1c\x1f"),
        (header(GOOD.replace(": (", ":\x1c(")), "is no dict"),
        (header(GOOD.replace("}\n", "}\x1d\n"), bytes(4)), "is no dict"),
        (header(GOOD.replace("(2,)", "(99999999999, 99999999999)")), "header promises int16"),
        (header(GOOD.replace("False", "0")), "is no dict"),
        (header(GOOD.replace("'<i2'", "True")), "its type is ''; read"),
        (header(GOOD.replace("False", "'F'")), "fortran_order in its header is not"),
        (header("{'descr': '<i2', 'descr': '<i2'}"), "'descr' twice"),
        (header("{'descr': '<i2'}"), "has the entries ['descr']"),
        (header("__import__('os').abort()"), "is no dict"),
        (header(GOOD.replace("<i2", "|b1"), b"\1\2"), "a truth value is neither 0 nor 1"),
    ],
)
def test_headers_that_are_wrong_are_named(data: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        npy.parse(data, "f")
    assert message in caught.value.message


def test_what_stands_in_front_of_an_archive_is_refused_as_numpy_does() -> None:
    file = io.BytesIO()
    numpy.savez(file, x=numpy.arange(3))
    data = file.getvalue()
    assert npy.unpack(data, "x", "f").header.shape == (3,)
    for front in (b"junk" + data, b"\0" + data[1:]):
        with pytest.raises(DataError, match="it does not begin with 50 4b 03 04"):
            npy.unpack(front, "x", "f")


def test_bytes_are_images_and_the_rest_of_the_split_is_left(tmp_path: Path) -> None:
    made = given(tmp_path, split={"train": 4, "val": 1})
    facts = made.facts()
    assert (facts.input, facts.classes, facts.sizes) == ((1, 4, 5), 3, {"train": 4, "val": 1})
    loaded = made.load()
    assert loaded.files == {
        "train.inputs": str(tmp_path / "x.npy"),
        "train.targets": str(tmp_path / "y.npy"),
    }
    assert list(loaded.sha256) == list(loaded.files)
    inputs, targets = loaded.splits["val"].batch(engine.tensor([0]))
    wanted = PIXELS[4].astype("f4") / numpy.float32(255)
    assert inputs.tolist() == [[wanted.tolist()]] and targets.tolist() == [0]


def test_floats_are_values_to_predict(tmp_path: Path) -> None:
    x, y = numpy.asfortranarray(numpy.arange(12.0).reshape(4, 3)), numpy.arange(4.0)
    loaded = given(tmp_path, arrays={"x": x, "y": y}, mean=1, std=2).load()
    assert (loaded.facts.target, loaded.facts.classes) == ((1,), None)
    inputs, targets = loaded.splits["train"].batch(engine.tensor([3]))
    assert (inputs.tolist(), targets.tolist()) == ([[4.0, 4.5, 5.0]], [[3.0]])


def test_an_autoencoder_needs_no_targets(tmp_path: Path) -> None:
    loaded = given(tmp_path, targets=None, target="input").load()
    inputs, targets = loaded.splits["train"].batch(engine.tensor([1]))
    assert loaded.facts.target == (1, 4, 5) and inputs.tolist() == targets.tolist()
    with pytest.raises(ConfigError, match="targets is missing"):
        given(tmp_path, targets=None)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": LABELS[:5]}, r"x.npy holds uint8 6 x 4 x 5, but .*y.npy holds int64 5"),
        ({"y": LABELS.reshape(3, 2)[:, :]}, "holds int64 3 x 2"),
        ({"x": PIXELS[:3], "y": LABELS.reshape(3, 2)}, "targets must be"),
        ({"y": LABELS - 1}, "sample 0 has label -1, expected 0 or more"),
        ({"x": PIXELS[:0], "y": LABELS[:0]}, "holds no samples"),
        ({"x": LABELS}, "int64 6 holds no samples"),
    ],
)
def test_arrays_that_do_not_go_together_are_named(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        given(tmp_path, arrays=arrays).facts()


@pytest.mark.parametrize("bad", [numpy.nan, 1e300])
def test_the_first_number_that_is_none_is_named(tmp_path: Path, bad: float) -> None:
    x = numpy.zeros((4, 3))
    x[2, 1] = bad
    made = given(tmp_path, arrays={"x": x, "y": LABELS[:4]})
    with pytest.raises(DataError, match=r"x\.npy: sample 2 holds (nan|inf)"):
        made.load()


def test_a_label_above_the_classes_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sample 1 has label 2, expected 0 to 1"):
        given(tmp_path, classes=2).load()


def archive(path: Path, **arrays: Any) -> NpzSource:
    numpy.savez_compressed(path, **arrays)
    names = {"inputs": "x", "targets": "y", "test_inputs": "xt", "test_targets": "yt"}
    return NpzSource(file=path.name, **names).locate(path.parent)


def test_an_archive_has_a_test_split(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.npz", x=PIXELS, y=LABELS, xt=PIXELS[:2], yt=LABELS[:2])
    assert made.facts().sizes == {"train": 6, "test": 2}
    loaded = made.load()
    assert list(loaded.sha256) == ["train"]
    assert loaded.splits["test"].batch(engine.tensor([1]))[1].tolist() == [2]


def test_an_array_that_is_not_there_gets_the_list(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.npz", x=PIXELS, y=LABELS, test=PIXELS)
    with pytest.raises(DataError, match="holds no array 'xt'; it has test, x, y"):
        made.facts()


def test_objects_in_an_archive_are_refused(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.npz", x=PIXELS, y=numpy.array([None] * 6), xt=PIXELS, yt=LABELS)
    with pytest.raises(DataError, match=r"a\.npz, y: it holds Python objects"):
        made.facts()


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\3\4 and no more")
    made = NpzSource(file="a.npz", inputs="x", targets="y").locate(tmp_path)
    with pytest.raises(DataError, match=r"a\.npz: not a whole \.npz archive"):
        made.facts()


def test_other_ways_of_packing_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("x.npy", saved(PIXELS))
    made = NpzSource(file="a.npz", inputs="x", targets="x").locate(tmp_path)
    with pytest.raises(DataError, match="'x' is packed by method 14; 0 and 8 are read"):
        made.facts()


@pytest.mark.parametrize("packed", [False, True])
def test_new_files_are_read_as_the_trained_ones(tmp_path: Path, packed: bool) -> None:
    loaded = given(tmp_path).load()
    if packed:
        numpy.savez(tmp_path / "new.npz", anything=PIXELS[2:4])
    else:
        numpy.save(tmp_path / "new.npy", PIXELS[2:4])
    found = loaded.read(tmp_path / ("new.npz" if packed else "new.npy"))
    plain, _ = loaded.splits["train"].batch(engine.tensor([2, 3]))
    assert found.inputs[:].tolist() == plain.tolist()
    numpy.save(tmp_path / "odd.npy", PIXELS[:, :3])
    with pytest.raises(DataError, match=r"samples are \(1, 3, 5\), the model was trained on"):
        loaded.read(tmp_path / "odd.npy")


@pytest.mark.parametrize(
    ("tail", "right"),
    [
        *(
            (tail, True)
            for tail in ("", "\n", "   ", "  \n", "\n\n", " \r\n", "\r   \n", "\t\f \n")
        ),
        *((tail, False) for tail in ("\n ", "\r  ", " \n \t", "\n\n  ", "x\n", "}\n")),
    ],
)
def test_a_header_ends_as_numpy_reads_it(tail: str, right: bool) -> None:
    """A last line of spaces alone is one that Python calls indented, unless it ends."""
    text = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }" + tail
    data = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode() + b"\1\2"
    if right:
        assert bytes(npy.parse(data, "x.npy").numbers) == b"\1\2"
    else:
        with pytest.raises(DataError, match="no dict of descr"):
            npy.parse(data, "x.npy")
