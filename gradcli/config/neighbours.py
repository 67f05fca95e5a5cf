"""Modules that lie beside own code: its hash says nothing of them, so they are not trusted."""

from __future__ import annotations

import site
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from gradcli.data.files import path_text


@contextmanager
def forbid_imports(folder: Path) -> Iterator[None]:
    """Within this context, importing a module from the folder raises ImportError."""
    finder = _Refusal(folder)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Refusal:
    """Looks before all others, and leaves to them what lies elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folders = {folder.absolute(), folder.resolve()}
        # Packages may be installed in the folder of a config: in a home folder, or its `.venv`.
        roots = map(Path, (sys.prefix, sys.base_prefix, site.getusersitepackages()))
        self.installed = [root for root in roots if self.folders & {*root.parents}]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """None; raises for a module that lies in the folder."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or fullname.partition(".")[0] == "gradcli":
            return None
        for file in (spec.origin, *(spec.submodule_search_locations or ())):
            if file is not None and self._is_neighbour(Path(file)):
                raise ImportError(
                    f"{path_text(file)} lies beside it, where anybody may have put it, and was "
                    "not run; where you trust it, add --trust-code (in Python: trust_code=True)"
                )
        return None

    def _is_neighbour(self, path: Path) -> bool:
        """Whether it lies in the folder, as written or behind links, and is not installed there."""
        ways = (path.absolute(), path.resolve())
        if any(way.is_relative_to(root) for way in ways for root in self.installed):
            return False
        return any(way.is_relative_to(folder) for way in ways for folder in self.folders)
