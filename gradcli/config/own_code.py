"""`code: [file.py]`: the layers, datasets, losses and metrics of a user's own Python files."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from gradcli import own
from gradcli.config import neighbours
from gradcli.config.layer import FOLLOWING, LEFT_OUT, LayerSpec, Make, Trial, run
from gradcli.config.node import MAX_MISTAKES, ErrorReport, YamlNode, describe
from gradcli.config.own_loss import OwnLoss
from gradcli.config.own_metric import OwnMetric
from gradcli.config.own_sentence import one_sentence
from gradcli.config.reader import MAX_BYTES
from gradcli.config.row import typed_parameters
from gradcli.config.tensor_spec import TensorSpec
from gradcli.config.trust import Trust
from gradcli.data import LoadedData, Source
from gradcli.data.hashes import merged
from gradcli.data.own import OwnDataset
from gradcli.dataclass import dataclass
from gradcli.errors import ConfigError, DeviceError, GradcliError
from gradcli.train.small_file import read_small


@dataclass(frozen=True)
class OwnCode:
    """What the files of a config add.

    Attributes:
        broken: a file could not be run, so that names may be missing.
        files: name and text of each file, as it is copied into the run, byte for byte.
    """

    broken: bool = False
    layers: Mapping[str, LayerSpec] = field(default_factory=dict)
    datasets: Mapping[str, Callable[..., Source]] = field(default_factory=dict)
    losses: Mapping[str, OwnLoss] = field(default_factory=dict)
    metrics: Mapping[str, OwnMetric] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def read(
    node: YamlNode | None,
    root: Path,
    reserved: Mapping[str, Collection[str]],
    report: ErrorReport,
    trust: Trust,
) -> OwnCode:
    """Run the files that `code:` names, relative to `root`, and collect the classes they mark.

    `reserved` has the names already in use, by kind. Files that `trust` refuses do not run.
    """
    code = OwnCode()
    if node is None or node.broken:
        return code
    before = len(report.errors)
    for item in node.list() if isinstance(node.value, list) else [node]:
        try:
            _add(code, item, root, reserved, trust)
        except GradcliError as error:
            error.location = error.location or item.location
            report.errors.append(error)
        if len(report.errors) > MAX_MISTAKES:
            break  # more are not shown
    return replace(code, broken=len(report.errors) > before)


def _add(
    code: OwnCode, item: YamlNode, root: Path, reserved: Mapping[str, Collection[str]], trust: Trust
) -> None:
    if not isinstance(item.value, str) or not item.value.endswith(".py"):
        raise ConfigError(f"code names Python files, got {describe(item)}", code="E104")
    path = root / item.value
    if path.name in code.files:
        raise ConfigError(f"two files of own code are called {path.name}", code="E106")
    if not os.path.isfile(path):  # noqa: PTH113 -- false, and no OSError, for a name too long
        raise _no_file(path)
    try:
        data = read_small(path, MAX_BYTES)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"own code {path} cannot be read: {reason}") from None
    with one_sentence(path):
        code.files[path.name] = data.decode("utf-8")  # type: ignore[index]
    trust.admit(path, hashlib.sha256(data).hexdigest())
    with nullcontext() if trust.everything else neighbours.forbid_imports(path.parent):
        module = _run(path, data)
    classes = [value for value in vars(module).values() if _is_marked(value, module)]
    if not classes:
        *marks, last = (f"@gradcli.{kind}" for kind in KINDS)
        message = f"{path} has no class with {', '.join(marks)} or {last}"
        raise ConfigError(message, code="E104")
    for cls in classes:
        kind = getattr(cls, own.MARK)
        attribute, make = KINDS[kind]
        table = getattr(code, attribute)
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
        if name in reserved[kind] or name in table:
            raise ConfigError(f"{path}: the name '{name}' is taken; rename the class", code="E106")
        table[name] = make(cls, path)


def _no_file(path: Path) -> ConfigError:
    """Own code that is not there. It is no data, which may have moved."""
    if os.path.lexists(path):
        return ConfigError(f"{path} is no regular file; code names Python files", code="E104")
    return ConfigError(f"there is no file {path}, own code that `code:` names")


class _Loader(SourceFileLoader):
    """Runs the bytes that were hashed: neither a file read again nor what Python compiled once."""

    def __init__(self, name: str, file: Path, data: bytes) -> None:
        super().__init__(name, str(file))
        self.data = data

    def get_source(self, fullname: str) -> str:
        """The text, for tracebacks."""
        return self.data.decode("utf-8")

    def get_code(self, fullname: str) -> CodeType:
        """The text compiled."""
        return self.source_to_code(self.data, self.path)


def _run(path: Path, data: bytes) -> ModuleType:
    """The bytes of a file as a module of its own; whatever it raises is told with its line."""
    name = own.MODULE + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    file = path.absolute()
    spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(name, file, data))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where type hints are looked up
    with one_sentence(path):
        spec.loader.exec_module(module)
    return module


def _is_marked(value: Any, module: ModuleType) -> bool:
    return (
        inspect.isclass(value) and value.__module__ == module.__name__ and own.MARK in vars(value)
    )


class OwnLayer(LayerSpec):
    """A layer of a user's own: the first parameter of its class is the shape of one sample."""

    def __init__(self, cls: type, path: Path) -> None:
        super().__init__(anything=cls)
        self.path = path
        with one_sentence(path):
            parameters = self.parameters
        if not parameters:
            raise ConfigError(
                f"{path}: the first parameter of {cls.__name__} must be the shape of one sample",
                code="E104",
            )
        first = next(iter(parameters))
        self.following, self.leave = {first: FOLLOWING["sample"]}, (first, *LEFT_OUT)

    def run(self, make: Make, x: TensorSpec) -> Trial:
        """The layer made and run on two samples; of zeros where it asks for their values."""
        with one_sentence(self.path):
            try:
                return run(make, x, "meta")
            except DeviceError:
                return run(make, x, "cpu")


def _dataset(cls: type, path: Path) -> Callable[..., Source]:
    """A dataset as configs know them, from fields and `splits()`."""
    data = dataclasses.dataclass(frozen=True)

    def splits(self: Any) -> Any:
        with one_sentence(path):
            return super(source, self).splits()

    def guarded(_: Any) -> AbstractContextManager[None]:
        return one_sentence(path)

    names: dict[str, Any] = {"__module__": cls.__module__, "__doc__": inspect.getdoc(cls)}
    names |= {"splits": splits, "guarded": guarded}
    with one_sentence(path):
        source: Any = data(type(cls.__name__, (data(cls), OwnDataset), names))
        typed_parameters(source)  # an unknown type is found here
    return source  # type: ignore[no-any-return]


# The kinds of own classes: where OwnCode has them, and what configs know them by.
KINDS: dict[str, tuple[str, Callable[[type, Path], Any]]] = {
    "layer": ("layers", OwnLayer),
    "dataset": ("datasets", _dataset),
    "loss": ("losses", OwnLoss),
    "metric": ("metrics", OwnMetric),
}


def beside_data(dataset: LoadedData, files: Mapping[str, str]) -> LoadedData:
    """The dataset with a hash of each file of own code, compared on resume like those of the data.

    Its role is "code/" and its name.
    """
    own_files = {f"code/{name}": sha256 for name, sha256 in hashes(files).items()}
    return replace(dataset, sha256=merged(dataset.sha256, own_files))


def hashes(files: Mapping[str, str]) -> dict[str, str]:
    """The hash of each file of own code, by its name."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
