"""What lies in the folder of a run: checkpoints, the log and the small files, by the command line.

A right run of each kind of data is made once. For every input its files are laid out anew, some of
them spoilt, and the commands that read them are carried out in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idx_bytes import idx_bytes
from parsing import Files, Parser, WrongAnswerError
from sealed import metadata, sealed
from spoiling import near, spoil_bytes, spoil_text, spoil_tree

from gradcli.cli.main import run
from gradcli.errors import RunError

ZEROS = "0" * 64
OLD_RUNS = Path(__file__).resolve().parents[1] / "data" / "runs-format1"
TRAIN = """\
optim: {name: adam, lr: 0.01}
train: {epochs: 2, batch: 8, log_every: 1, best: val.loss, ema: 0.9}
"""
SPLIT = "split: {train: 80%, val: 20%}"
PIECES = (
    "{", "}", "[", "]", ":", ",", '"', "\n", "\r", "\x00", "\x1c", "\u2028", "\\ud800", "é", "null",
    "NaN", "-Infinity", "1e999", "9" * 5000, "-1", "0", "true", '{"a":' * 2000, "step", '"step": 3',
    "garbage\n", "step-00000008.safetensors", "../", "/", " ", "\ufeff",
)  # fmt: skip
BUG = re.compile(r"this is a bug in gradcli: (\w+): .*?( at \S+:\d+)?$", re.MULTILINE)


@dataclass(frozen=True)
class Template:
    """A run as it is when nothing is spoilt.

    Attributes:
        files: the content of each of its files, by the path in its folder.
        new: a file to predict.
        longer: the override with which it goes on.
    """

    files: Files
    new: Path
    longer: str


class RunFiles(Parser):
    """Everything that reads a run; which files are spoilt, a class below says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.templates = {kind: self._template(kind) for kind in ("table", "text", "pictures")}
        self.templates |= {name: self._old(name) for name in ("houses", "words")}

    def _template(self, kind: str) -> Template:
        config = self.folder / f"{kind}.yaml"
        config.write_text(
            f"gradcli: 1\nname: {kind}\n{WRITERS[kind](self.folder)}loss: cross_entropy\n{TRAIN}"
        )
        runs = self.folder / "made"
        self._done("train", str(config), "--runs", str(runs))
        [path] = (runs / kind).iterdir()
        commanded(
            "resume", str(path), "-s", "optim.lr=0.02", "-s", "train.epochs=3", "--threads", "2"
        )
        return Template(contents(path), self.folder / f"{kind}.new", "train.epochs=4")

    def _done(self, *arguments: str) -> None:
        said = commanded(*arguments)
        if said:
            raise AssertionError(said)

    def _old(self, name: str) -> Template:
        """A run that gradcli wrote before checkpoint format 2."""
        [path] = (OLD_RUNS / "runs" / name).iterdir()
        files = contents(path)
        place = files["resolved.yaml"].replace(b"/data/runs-format1", str(OLD_RUNS).encode())
        data = next((OLD_RUNS / "data").glob(f"{name}.*"))
        return Template({**files, "resolved.yaml": place}, data, "train.keep=9")

    def right(self) -> Sequence[Files]:
        return [{"kind": kind.encode()} for kind in self.templates]

    def template(self, files: Files) -> Template:
        return self.templates[files["kind"].decode()]

    def read(self, files: Files) -> None:
        template, path = self.template(files), self.folder / "run"
        named = {
            name: content for name, content in files.items() if name not in ("kind", "command")
        }
        laid_out(path, {**template.files, **named})
        commands = self.commands(str(path), template)
        only = files.get("command", b"").decode()
        for arguments in [commands[only]] if only else commands.values():
            said = commanded(*arguments)
            if said:  # a command may say many errors, of which none is endless
                raise RunError(max(errors_in(said), key=len))

    def commands(self, path: str, template: Template) -> dict[str, tuple[str, ...]]:
        """What reads a run; a spoilt one meets one of these, a right one each."""
        return {
            "predict": ("predict", path, str(template.new)),
            "eval": ("eval", path, "--split", "val", "--json"),
            "resume": ("resume", path),
            "longer": ("resume", path, "-s", template.longer),
        }

    def spoilt(self, rng: random.Random) -> Files:
        kind = rng.choice(list(self.templates))
        command = rng.choice(("predict", "eval", "resume", "longer"))
        spoilt = self.spoil(self.templates[kind].files, rng)
        return {"kind": kind.encode(), "command": command.encode(), **spoilt}

    @abstractmethod
    def spoil(self, files: Files, rng: random.Random) -> Files:
        """Some of a run's files, spoilt."""


def table(folder: Path) -> str:
    rows = [f"{i * 7 % 11}.5,{['red', 'blue', 'green'][i % 3]},{'ab'[i % 2]}\n" for i in range(40)]
    for name in ("table.csv", "table.new"):
        (folder / name).write_text("size,colour,kind\n" + "".join(rows) + "NA,red,a\n")
    return (
        f"data: {{name: csv, file: table.csv, target: kind, numeric: [size], category: [colour], "
        f"missing: mean, {SPLIT}}}\nmodel: [linear: $data.classes]\n"
    )


def text(folder: Path) -> str:
    for name in ("text.txt", "text.new"):
        (folder / name).write_text("the cat sat on the mat\n" * 9)
    return (
        f"data: {{name: text, file: text.txt, context: 4, {SPLIT}}}\n"
        "model: [embed: 4, linear: $data.vocab]\n"
    )


def pictures(folder: Path) -> str:
    pixels = bytes(i * 37 % 256 for i in range(30 * 16))
    (folder / "images").write_bytes(idx_bytes((30, 4, 4), pixels))
    (folder / "pictures.new").write_bytes(idx_bytes((30, 4, 4), pixels))
    (folder / "labels").write_bytes(idx_bytes((30,), bytes(i % 3 for i in range(30))))
    return (
        f"data: {{name: idx, images: images, labels: labels, size: 6, mean: 0.5, std: 0.25, "
        f"{SPLIT}}}\nmodel: [flatten, linear: $data.classes]\n"
    )


WRITERS = {"table": table, "text": text, "pictures": pictures}


def contents(path: Path) -> Files:
    """Every file of a run but its lock, by its path in there; of checkpoints the last and best."""
    files = [one for one in path.iterdir() if one.is_file() and one.name != "lock"]
    names = {one.read_text().strip() for one in files if one.name in ("last", "best")}
    files += [path / "checkpoints" / name for name in sorted(names)]
    return {str(one.relative_to(path)): one.read_bytes() for one in files}


def laid_out(path: Path, files: Files) -> None:
    shutil.rmtree(path, ignore_errors=True)
    (path / "checkpoints").mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)


def commanded(*arguments: str) -> str:
    """What a command says where it ends with another code than 0; exit 1 is a bug."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*arguments, "--threads", "2"])
    said = err.getvalue().strip()
    if code == 1:
        bug = BUG.search(said)
        cause = f"{bug[1]}{bug[2]}" if bug else said[-300:]
        raise WrongAnswerError(f"exit 1 of {arguments[0]}, {cause}")
    return (said or f"exit {code}") if code else ""


def errors_in(said: str) -> list[str]:
    """What a command said, each error by itself; with --json they are one line."""
    if not said.startswith("{"):
        return said.splitlines()
    return [json.dumps(error) for error in json.loads(said)["errors"]]


class CheckpointHeader(RunFiles):
    """The metadata of a checkpoint whose seal is right: it proves no origin."""

    def spoil(self, files: Files, rng: random.Random) -> Files:
        checkpoints = [one for one in files.items() if one[0].startswith("checkpoints")]
        return {name: self._spoil(data, rng) for name, data in checkpoints}

    def _spoil(self, data: bytes, rng: random.Random) -> bytes:
        meta, way = metadata(data), rng.random()
        if way < 0.5:
            key = rng.choice(list(meta))
            spoilt = {**meta, key: rng.choice((near(meta[key], rng), spoil_tree(meta[key], rng)))}
        elif way < 0.8:
            spoilt = spoil_tree(meta, rng)
        elif way < 0.95:
            text = spoil_text(json.dumps({**meta, "sha256": ZEROS}), rng, PIECES)
            return sealed(data, text.encode("utf-8", "replace").decode())
        else:
            return spoil_bytes(data, rng)
        return sealed(data, json.dumps({**spoilt, "sha256": ZEROS}))


class LogFile(RunFiles):
    """log.jsonl: however it is damaged, what a resumed run leaves is one object a line."""

    def spoilt(self, rng: random.Random) -> Files:
        return {**super().spoilt(rng), "command": b"longer"}

    def spoil(self, files: Files, rng: random.Random) -> Files:
        return {"log.jsonl": self._spoil(files, rng)}

    def _spoil(self, files: Files, rng: random.Random) -> bytes:
        data, way = files["log.jsonl"], rng.random()
        if way < 0.4:
            return spoil_bytes(data, rng)
        if way < 0.7:
            return spoil_text(data.decode(), rng, PIECES).encode("utf-8", "surrogatepass")
        lines = data.splitlines()
        at = rng.randrange(len(lines))
        record = spoil_tree(json.loads(lines[at]), rng)
        lines[at] = json.dumps(record, ensure_ascii=rng.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
        if rng.random() < 0.3:
            rng.shuffle(lines)
        return b"\n".join(lines) + rng.choice((b"\n", b"", b"\r\n"))

    def read(self, files: Files) -> None:
        super().read(files)
        steps = [one["step"] for one in records(self.folder / "run") if one["event"] == "step"]
        if len(steps) > len(set(steps)):
            raise WrongAnswerError("a step is in the resumed log twice")


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, each strict JSON."""
    lines = (path / "log.jsonl").read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    try:
        read = [json.loads(line, parse_constant=lambda word: 1 / 0) for line in lines]
    except (ValueError, ZeroDivisionError) as error:
        raise WrongAnswerError(
            f"the resumed log has a line that is no strict JSON: {error}"
        ) from None
    if not all(isinstance(one, dict) and {"event", "step"} <= set(one) for one in read):
        raise WrongAnswerError("the resumed log has a line without event and step")
    return read


class SmallFiles(RunFiles):
    """status.json, manifest.json, plan.json, the pointers and the configs of a run."""

    def spoil(self, files: Files, rng: random.Random) -> Files:
        names = [name for name in files if "/" not in name and name != "log.jsonl"]
        spoilt = rng.sample(names, rng.choice((1, 1, 1, 2)))
        return {name: self._spoil(name, files[name], rng) for name in spoilt}

    def _spoil(self, name: str, data: bytes, rng: random.Random) -> bytes:
        if name.endswith(".json") and rng.random() < 0.7:
            return json.dumps(spoil_tree(json.loads(data), rng)).encode()
        if name.endswith(".safetensors") or rng.random() < 0.5:
            return spoil_bytes(data, rng)
        return spoil_text(data.decode(), rng, PIECES).encode("utf-8", "surrogatepass")
