"""`gradcli.save_tensors` and `load_tensors`, against the safetensors package in both directions."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from safetensors import deserialize, serialize_file
from test_safetensors_file import theirs

import gradcli
from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.dtype import DTYPES
from gradcli.errors import CheckpointError, OptionError
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.state import NAMES

VALUES = [[0, 1, 0], [1, 2, 3]]


def every_type() -> dict[str, engine.Tensor]:
    return {name: engine.tensor(VALUES).to(dtype) for name, dtype in DTYPES.items()}


def as_stored(path: Path) -> dict[str, RawTensor]:
    """What the package reads."""
    read = deserialize(path.read_bytes())
    return {
        name: RawTensor(one["dtype"], tuple(one["shape"]), bytes(one["data"])) for name, one in read
    }


def test_every_type_of_the_engine_comes_back(tmp_path: Path) -> None:
    tensors = every_type()
    gradcli.save_tensors(tmp_path / "a.safetensors", tensors, {"origin": "a test", "é": ""})
    loaded = gradcli.load_tensors(str(tmp_path / "a.safetensors"))
    assert loaded.metadata == {"origin": "a test", "é": ""}
    assert set(loaded) == set(tensors) == set(NAMES)
    for name, one in loaded.items():
        assert (one.dtype, one.shape) == (tensors[name].dtype, (2, 3))
        assert one.tolist() == tensors[name].tolist()


def test_the_package_reads_every_type(tmp_path: Path) -> None:
    tensors = every_type()
    gradcli.save_tensors(tmp_path / "a", tensors)
    read = as_stored(tmp_path / "a")
    for name, one in tensors.items():
        assert read[name] == RawTensor(NAMES[name], (2, 3), bytes(one.memoryview()))


def test_numpy_reads_the_same_values(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="of the extra 'parity'")
    tensors = {name: one for name, one in every_type().items() if name != "bfloat16"}
    gradcli.save_tensors(tmp_path / "a", tensors)
    from safetensors.numpy import load_file

    read = load_file(tmp_path / "a")
    assert {name: one.tolist() for name, one in read.items()} == {
        name: one.tolist() for name, one in tensors.items()
    }


def test_files_of_the_package_are_read(tmp_path: Path) -> None:
    floats = struct.pack("<6f", *range(6))
    arguments, _alive = theirs(
        {
            "weight": RawTensor("F32", (2, 3), floats),
            "scalar": RawTensor("I64", (), struct.pack("<q", -7)),
            "none": RawTensor("F64", (0, 4), b""),
            "flags": RawTensor("BOOL", (2,), b"\x01\x00"),
        }
    )
    serialize_file(arguments, str(tmp_path / "a"), {"k": "v"})
    loaded = gradcli.load_tensors(tmp_path / "a")
    assert loaded.metadata == {"k": "v"}
    assert loaded["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (loaded["scalar"].item(), loaded["none"].shape) == (-7, (0, 4))
    assert (loaded["flags"].tolist(), loaded["flags"].dtype) == ([True, False], engine.bool_)


def test_views_are_written_row_by_row(tmp_path: Path) -> None:
    x = engine.arange(24).reshape(2, 3, 4)
    views = {
        "turned": x.permute(2, 0, 1),
        "stepped": x[:, ::2, 1:],
        "expanded": engine.tensor([[1.0], [2.0]]).expand(2, 3),
        "offset": x[1],
        "half": x.to(engine.bfloat16)[:, :, ::3],
        "scalar": engine.tensor(2.5),
        "none": engine.zeros(3, 0, 2),
        "asks": engine.ones(2, requires_grad=True),
    }
    gradcli.save_tensors(tmp_path / "a", views)
    loaded = gradcli.load_tensors(tmp_path / "a")
    for name, view in views.items():
        assert loaded[name].tolist() == view.tolist(), name
        assert (loaded[name].shape, loaded[name].dtype) == (view.shape, view.dtype)
        assert loaded[name].is_contiguous() and not loaded[name].requires_grad
    assert as_stored(tmp_path / "a")["turned"].data == struct.pack(
        "<24q", *(i * 12 + j * 4 + k for k in range(4) for i in range(2) for j in range(3))
    )


def test_a_model_takes_its_weights_back(tmp_path: Path) -> None:
    model, other = (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)) for _ in range(2))
    gradcli.save_tensors(tmp_path / "a", model.state_dict())
    other.load_state_dict(gradcli.load_tensors(tmp_path / "a"))
    x = engine.randn(5, 3)
    assert other(x).tolist() == model(x).tolist()


def test_what_is_loaded_belongs_to_nobody_else(tmp_path: Path) -> None:
    gradcli.save_tensors(tmp_path / "a", {"x": engine.zeros(3), "y": engine.zeros(3)})
    loaded = gradcli.load_tensors(tmp_path / "a")
    loaded["x"].add_(1)
    assert loaded["y"].tolist() == [0, 0, 0]
    assert gradcli.load_tensors(tmp_path / "a")["x"].tolist() == [0, 0, 0]


def test_no_tensors_and_odd_names(tmp_path: Path) -> None:
    gradcli.save_tensors(tmp_path / "a", {})
    assert (dict(gradcli.load_tensors(tmp_path / "a")), as_stored(tmp_path / "a")) == ({}, {})
    odd = {"": engine.ones(1), "\n\0": engine.ones(1), "雪 'x'": engine.ones(1), "x" * 9999: x()}
    gradcli.save_tensors(tmp_path / "a", odd)
    assert set(gradcli.load_tensors(tmp_path / "a")) == set(as_stored(tmp_path / "a")) == set(odd)


def x() -> engine.Tensor:
    return engine.ones(1)


@pytest.mark.parametrize(
    ("tensors", "metadata", "says"),
    [
        ([x()], None, "tensors must be a dict by name, got list"),
        (nn.Linear(2, 2), None, "must be a dict by name, got Linear; give its state_dict()"),
        ({1: x()}, None, "a name in tensors must be str, got int 1"),
        ({"a": [1.0]}, None, "tensors['a'] must be Tensor, got list; engine.tensor(x) makes"),
        ({"a": None}, None, "tensors['a'] must be Tensor, got NoneType"),
        ({"__metadata__": x()}, None, "nothing in tensors can be called '__metadata__'"),
        ({"\ud800": x()}, None, "nothing in tensors can be called '\\ud800'"),
        ({}, {"epoch": 3}, "metadata['epoch'] must be str, got int; json.dumps(x) makes a text"),
        ({}, {3: "a"}, "a name in metadata must be str, got int 3"),
        ({}, {"a": "\udfff"}, "metadata['a'] holds half a surrogate pair"),
        ({}, "text", "metadata must be a dict by name, got str"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(
    tmp_path: Path, tensors: Any, metadata: Any, says: str
) -> None:
    with pytest.raises(OptionError) as caught:
        gradcli.save_tensors(tmp_path / "a", tensors, metadata)
    assert says in str(caught.value)
    assert isinstance(caught.value, TypeError) == ("must be" in says)
    assert not [*tmp_path.iterdir()]


def test_a_tensor_without_values_is_refused(tmp_path: Path) -> None:
    nowhere = {"a": engine.ones(2).to("meta")}
    with pytest.raises(OptionError, match=r"tensors\['a'\] lies on meta, which has no values"):
        gradcli.save_tensors(tmp_path / "a", nowhere)


def test_an_array_is_told_how_to_become_a_tensor(tmp_path: Path) -> None:
    array = pytest.importorskip("numpy", reason="of the extra 'parity'").zeros(3)
    with pytest.raises(OptionError, match=r"got ndarray; engine.from_dlpack\(x\) makes a Tensor"):
        gradcli.save_tensors(tmp_path / "a", {"a": array})


def test_a_header_above_the_limit_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"metadata take 100000.* the format allows 100000000"):
        gradcli.save_tensors(tmp_path / "a", {}, {"a": "x" * 100_000_000})
    assert not [*tmp_path.iterdir()]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    gradcli.save_tensors(tmp_path / "a", {"old": x()})
    before = (tmp_path / "a").read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(CheckpointError, match=r"cannot save .*a: No space left on device"):
            gradcli.save_tensors(tmp_path / "a", {"new": engine.ones(1000)})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == before
    with pytest.raises(CheckpointError, match=r"cannot save .*: No such file or directory"):
        gradcli.save_tensors(tmp_path / "no" / "a", {})
    with pytest.raises(CheckpointError, match="it is there and is no regular file"):
        gradcli.save_tensors(tmp_path, {})


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot read .*nothing: No such file or directory"):
        gradcli.load_tensors(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="not a regular file"):
        gradcli.load_tensors(tmp_path)
    with pytest.raises(CheckpointError, match="not a regular file"):
        gradcli.load_tensors("/dev/zero")
    with pytest.raises(CheckpointError, match="null"):
        gradcli.load_tensors("a\0b")
    (tmp_path / "a.pt").write_bytes(b"PK\x03\x04....")
    with pytest.raises(CheckpointError, match=r"a\.pt: this is a zip archive .*convert it"):
        gradcli.load_tensors(tmp_path / "a.pt")


def test_a_type_that_the_engine_lacks_is_named(tmp_path: Path) -> None:
    gradcli.save_tensors(tmp_path / "a", {"w": engine.ones(4).to(engine.bfloat16)})
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content.replace(b'"BF16"', b'"F16" '))
    with pytest.raises(CheckpointError, match=r"tensor 'w' is F16, .*save it as one of F32, F64"):
        gradcli.load_tensors(tmp_path / "a")


def test_damaged_files_are_read_or_refused_never_worse(tmp_path: Path) -> None:
    gradcli.save_tensors(tmp_path / "a", every_type(), {"k": "v"})
    content = (tmp_path / "a").read_bytes()
    cut = [content[:length] for length in range(len(content))]
    flipped = [content[:i] + bytes([content[i] ^ 0x5A]) + content[i + 1 :] for i in range(len(cut))]
    refused = 0
    for data in [*cut, *flipped]:
        (tmp_path / "b").write_bytes(data)
        try:
            for one in gradcli.load_tensors(tmp_path / "b").values():
                one.tolist()
        except CheckpointError:
            refused += 1
    assert len(cut) + 100 < refused < len(cut) + len(flipped)


def test_the_package_offers_them() -> None:
    assert {"load_tensors", "save_tensors"} <= set(gradcli.__all__) <= set(dir(gradcli))
    with pytest.raises(AttributeError, match="module 'gradcli' has no attribute 'save_tensor'"):
        gradcli.save_tensor  # noqa: B018
