"""The shipped configs as templates: what each is for, its text, and the data that came along.

An installed gradcli has them in its own folder, which setup.py fills; a clone reads its
configs/ and datasets/.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from gradcli.dataclass import dataclass
from gradcli.starter.comments import commented

FOLDER = "shipped"
_DATA = re.compile(r"(?:\.\./)+(datasets/[\w./-]+)")
_DATA_NAME = re.compile(r"^data: \{name: (\w+)", re.M)
_COMMAND = re.compile(r"(?<=gradcli train )configs/(?:long/)?")
_WHAT = re.compile(r"^# What: +(.*)", re.M)


@dataclass(frozen=True)
class Template:
    """One shipped config."""

    name: str
    path: Path

    @property
    def what(self) -> str:
        """What it trains, in a line."""
        match = _WHAT.search(self.path.read_text(encoding="utf-8"))
        return match[1] if match else ""

    def text(self) -> str:
        """The config with comments; its data lies in datasets/ beside it."""
        text = self.path.read_text(encoding="utf-8")
        return commented(_COMMAND.sub("", _DATA.sub(r"\1", text)))

    def data(self) -> Iterator[tuple[Path, Path]]:
        """The files of its data that came along, each with its path beside the config."""
        text = self.path.read_text(encoding="utf-8")
        names = [Path(name).parent for name in _DATA.findall(text)]
        names += [Path("datasets", name) for name in _DATA_NAME.findall(text)]
        for folder in names:
            for file in sorted((root() / folder).glob("*")):
                if file.is_file() and file.suffix != ".py":  # how the data was made
                    yield file, folder / file.name


def root() -> Path:
    """The folder of configs/ and datasets/."""
    package = Path(__file__).parents[1]
    shipped = package / FOLDER
    return shipped if shipped.is_dir() else package.parent


def templates() -> dict[str, Template]:
    """All of them by name, those that train for minutes last."""
    folder = root() / "configs"
    paths = [*sorted(folder.glob("*.yaml")), *sorted((folder / "long").glob("*.yaml"))]
    return {path.stem: Template(path.stem, path) for path in paths}


def copy(file: Path, to: Path) -> bool:
    """A file of data to its place, unless one lies there; whether it was copied."""
    if to.exists():
        return False
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    return True
