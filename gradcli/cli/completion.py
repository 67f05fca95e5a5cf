"""What a shell offers at TAB, read from names and small files; no engine is imported."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

VARIABLE = "_GRADCLI_COMPLETE"
YAML = (".yaml", ".yml")
# That `init` writes configs for.
DATA = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".txt")
MOST_CHARACTERS = 20_000  # of a config: a TAB must not take seconds
DEEPEST = 3  # levels of keys that are offered
STEP_FILE = re.compile(r"step-0*([0-9]+)\.safetensors")
# The keys of `train:`. Its schema takes half a second to import; a test compares the two.
TRAIN_KEYS = (
    "batch",
    "best",
    "capture",
    "checkpoint_every",
    "checkpoint_minutes",
    "clip",
    "clip_value",
    "drop_last",
    "early_stop",
    "ema",
    "epochs",
    "eval_every",
    "keep",
    "log_every",
    "micro_batch",
    "on_nonfinite",
    "precision",
    "reduce",
    "sample",
    "sampler",
    "seed",
    "steps",
    "timeout",
)


def configs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Config files, and the folders on the way to more of them."""
    folder, _, begin = incomplete.rpartition("/")
    folders = incomplete[: len(incomplete) - len(begin)]
    names = []
    path = os.path.expanduser(folder)  # noqa: PTH111 -- no home is no error here
    for entry in os.scandir(path or ("/" if incomplete.startswith("/") else ".")):
        hidden = entry.name.startswith(".") and not begin.startswith(".")
        if hidden or not entry.name.startswith(begin):
            continue
        if entry.is_dir():
            names.append(f"{folders}{entry.name}/")
        elif entry.name.endswith(YAML):
            names.append(folders + entry.name)
    return sorted(names)


def starters(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Templates, and the files and folders that `init` can write a config for."""
    from gradcli.starter.templates import templates

    folder, _, begin = incomplete.rpartition("/")
    path = os.path.expanduser(folder)  # noqa: PTH111 -- no home is no error here
    entries = os.scandir(path or ("/" if incomplete.startswith("/") else "."))
    there = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    names = [name for name in there if name.endswith(("/", *DATA)) and name.startswith(begin)]
    folders = incomplete[: len(incomplete) - len(begin)]
    own = sorted(folders + name for name in names if not name.startswith("."))
    return [*(name for name in templates() if name.startswith(incomplete)), *own]


def runs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """`last` and the names of runs; after an `@`, the checkpoints of that run."""
    folder = Path(ctx.params.get("runs") or "runs")
    name, at, _ = incomplete.rpartition("@")
    if at:
        names = [f"{name}@{which}" for which in _checkpoints(_run(folder, name))]
    else:
        names = ["last", *sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())]
    return [name for name in names if name.startswith(incomplete)]


def run_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of runs alone."""
    folder = Path(ctx.params.get("runs") or "runs")
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [name for name in names if name.startswith(incomplete)]


def checkpoints(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """`best`, `last` and the steps of the run on the line."""
    run = _run(Path(ctx.params.get("runs") or "runs"), _words()[2])
    return [which for which in _checkpoints(run) if which.startswith(incomplete)]


def _words() -> list[str]:
    """The line so far; click gives up its arguments where an option waits for its value."""
    return split_arg_string(os.environ.get("COMP_LINE") or os.environ.get("COMP_WORDS", ""))


def _run(runs: Path, name: str) -> Path | None:
    """The newest run of a name, or of all."""
    if "/" in name:
        return Path(name)
    from gradcli.train.run_start import newest

    return newest(runs.glob("*/*/" if name == "last" else f"{name}/*/"))


def _checkpoints(run: Path | None) -> list[str]:
    if run is None:
        return []
    names = [file.name for file in run.joinpath("checkpoints").iterdir()]
    steps = sorted(int(match[1]) for match in map(STEP_FILE.fullmatch, names) if match)
    return ["best", "last", *map(str, steps)]


def keys(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Keys for -s: those of the config on the line, and all of `train:`."""
    names = {f"train.{key}": None for key in TRAIN_KEYS}
    with contextlib.suppress(Exception):
        import yaml

        path = next(word for word in _words() if word.endswith(YAML))
        with Path(path).open(encoding="utf-8") as file:
            config = yaml.safe_load(file.read(MOST_CHARACTERS))
        names |= dict.fromkeys(_keys(config, "", DEEPEST))
    return sorted(f"{name}=" for name in names if name.startswith(incomplete))


def _keys(value: Mapping[str, Any], prefix: str, levels: int) -> Iterator[str]:
    for key, inside in value.items():
        if isinstance(inside, Mapping) and levels:
            yield from _keys(inside, f"{prefix}{key}.", levels - 1)
        else:
            yield f"{prefix}{key}"


def ops(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of ops, from the stub that is made of their declarations."""
    stub = Path(__file__).parents[1] / "engine" / "table.pyi"
    names = set(re.findall(r"^def (\w+)", stub.read_text(encoding="utf-8"), re.MULTILINE))
    return sorted(name for name in names if name.startswith(incomplete))


def words(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """What `explain` knows."""
    from gradcli.starter.words import vocabulary

    return sorted({word for word in vocabulary() if word.startswith(incomplete)})


def choices(*names: str) -> Any:
    """A function that offers these names."""
    return lambda ctx, parameter, incomplete: [n for n in names if n.startswith(incomplete)]


class Bash(BashComplete):
    """Click's bash with the line as it was typed, for bash splits words at `@` and `=` too."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local line
    COMPREPLY=()
    while read -r line; do
        case "$line" in
            file,*) compopt -o default ;;
            dir,*) compopt -o dirnames ;;
            plain,*[=/]) compopt -o nospace; COMPREPLY+=("${line#*,}") ;;
            plain,*) COMPREPLY+=("${line#*,}") ;;
        esac
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
    _before = ""  # what bash takes for a word of its own, in front of what it replaces

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one so far."""
        line = os.environ["COMP_LINE"]
        line = line.encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        last = words.pop() if words and not line[-1].isspace() else ""
        breaks = [sign for sign in "@=:" if sign in os.environ.get("COMP_WORDBREAKS", "@=:")]
        end = max((last.rfind(sign) for sign in breaks), default=-1)
        self._before = last[: end + 1]
        return words[1:], last

    def format_completion(self, item: CompletionItem) -> str:
        """`plain,VALUE`, without what stands there already."""
        return f"{item.type},{str(item.value).removeprefix(self._before)}"


def answer(cli: click.Command) -> int:
    """Write what the shell asks for; whatever goes wrong, it gets nothing and no complaint."""
    add_completion_class(Bash)
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        return shell_complete(cli, {}, "gradcli", VARIABLE, os.environ[VARIABLE])
    return 1
