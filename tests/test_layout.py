"""What the source tree may not contain: kept here rather than promised."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gradcli"
CSRC = PACKAGE / "csrc"
LONGEST = 400

PYTHON = sorted(p for p in PACKAGE.rglob("*.py"))
C = sorted(p for p in CSRC.rglob("*") if p.suffix in (".c", ".h"))
# Written by cffi, by `gradcli ops` and by the tests: nobody edits them.
GENERATED = {
    "docs/api.md",
    "docs/ops.md",
    "docs/parity.md",
    "gradcli/engine/device/_cpu.c",
    "gradcli/engine/table.pyi",
    "gradcli/engine/tensor.pyi",
}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> Iterator[Path]:
    """Source files of the project, wherever they lie."""
    folders = ("gradcli", "tests", "docs", "ci", "benchmarks", "configs")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".c", ".h", ".md", ".yaml") and named(path) not in GENERATED:
                yield path
    yield from (ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))


def test_no_file_is_longer_than_400_lines() -> None:
    too_long = {named(p): n for p in tracked() if (n := p.read_bytes().count(b"\n")) > LONGEST}
    assert not too_long


def test_every_module_says_what_lives_in_it() -> None:
    silent = [named(p) for p in PYTHON if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_every_c_file_says_what_lives_in_it() -> None:
    silent = [named(p) for p in C if not re.match(rf"/\* {re.escape(p.name)} -- \w", p.read_text())]
    assert not silent


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = re.compile(r"^_?(utils?|helpers?|common|misc|base([-_].*)?)\.(py|c|h)$")
    assert not [named(p) for p in (*PYTHON, *C) if vague.match(p.name)]


def test_files_of_tests_have_names_of_their_own() -> None:
    """All folders of tests are on Python's path: of two files with one name, one is not seen."""
    names = Counter(p.name for p in (ROOT / "tests").rglob("*.py"))
    assert not [name for name, count in names.items() if count > 1 and name != "conftest.py"]


def packages() -> list[str]:
    folders = {p.parent for p in PACKAGE.rglob("__init__.py")} - {PACKAGE} | {CSRC}
    return sorted(named(folder) for folder in folders)


def test_architecture_names_every_package_and_stays_short() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    missing = [name for name in packages() if f"{name.removeprefix('gradcli/')}/" not in text]
    assert not missing
    assert len(text.splitlines()) <= 150


def test_architecture_has_the_order_that_the_linter_keeps() -> None:
    text = " ".join((ROOT / "ARCHITECTURE.md").read_text().split())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    orders = [one["layers"] for one in settings["contracts"] if one["type"] == "layers"]
    assert len(orders) == 2
    for layers in orders:
        assert " > ".join(layers).replace("gradcli.", "") in text


def test_architecture_names_every_file_of_the_engine() -> None:
    [row] = re.findall(r"^\| gradcli/engine/ \|.*", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    listed = set(re.findall(r"\w+", row))
    files = {path.stem for path in (PACKAGE / "engine").glob("*.py")} - {"__init__"}
    assert not files - listed


def test_dataclasses_are_those_that_cost_a_start_little() -> None:
    slow = re.compile(r"^from dataclasses import .*\bdataclass\b", re.M)
    theirs = [named(p) for p in PYTHON if slow.search(p.read_text())]
    assert theirs == []


BANNED_CALLS = {
    "eval",
    "exec",
    "compile",
    "os.system",
    "os.popen",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
}
# As the standard library does: a constructor is written of the names of a class's own fields.
NO_DATA = {"gradcli/dataclass.py": {"exec"}}


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(path: Path) -> set[str]:
    """What a file calls, as written."""
    return {ast.unparse(call.func) for call in calls(ast.parse(path.read_text()))}


@pytest.mark.parametrize("path", PYTHON, ids=named)
def test_python_never_executes_data(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert called(path) & BANNED_CALLS == NO_DATA.get(named(path), set())
    shells = [ast.unparse(c) for c in calls(tree) if any(k.arg == "shell" for k in c.keywords)]
    assert not shells
    assert not imported(tree) & {"pickle", "marshal", "shelve", "dill", "numpy", "torch"}


def test_foreign_libraries_are_loaded_in_two_places_and_late() -> None:
    """interop gives NumPy its arrays; `bench --compare torch` measures PyTorch."""
    loading = {named(p) for p in PYTHON if called(p) & {"importlib.import_module", "__import__"}}
    assert loading == {
        "gradcli/bench/torch_model.py",
        "gradcli/cli/main.py",
        "gradcli/engine/interop.py",
    }


def test_own_code_is_run_in_one_place_behind_one_door() -> None:
    """What runs the text of a file asks config/trust.py before."""
    running = re.compile(r"exec_module|source_to_code|load_module|run_path|run_module")
    assert [named(p) for p in PYTHON if running.search(p.read_text())] == [
        "gradcli/config/own_code.py"
    ]
    text = (PACKAGE / "config" / "own_code.py").read_text()
    assert text.count("_run(path, data)") == text.count("trust.admit(") == 1
    assert text.index("trust.admit(") < text.index("= _run(path, data)")


def imported(tree: ast.AST) -> set[str]:
    """First parts of the modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_only_the_output_module_prints() -> None:
    printing = [named(p) for p in PYTHON if called(p) & {"print", "click.echo", "sys.stdout.write"}]
    assert printing == ["gradcli/cli/output.py"]


def code_of(path: Path) -> str:
    """A C file without its comments and texts."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.DOTALL)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


BANNED_IN_C = re.compile(
    r"\b(abort|_?exit|assert|v?s?n?f?printf|puts|fopen|open|system|gets|str(n?cpy|n?cat|tok)|atoi|"
    r"alloca|signal|rand|setenv|longjmp)\s*\("
)


@pytest.mark.parametrize("path", C, ids=named)
def test_c_never_ends_the_process_prints_or_opens_files(path: Path) -> None:
    assert not BANNED_IN_C.findall(code_of(path))


@pytest.mark.parametrize("path", C, ids=named)
def test_few_files_of_c_touch_the_heap_or_threads(path: Path) -> None:
    if path.name not in ("memory.c", "run.c", "threads.c", "program.c"):
        assert not re.findall(r"\b(malloc|calloc|realloc|free|pthread_\w+)\s*\(", code_of(path))


def test_tensors_are_made_in_few_places() -> None:
    """An op that builds a Tensor itself loses its history, silently."""
    allowed = {
        "gradcli/engine/tensor.py",  # grad, detach
        "gradcli/engine/op.py",  # the results of ops
        "gradcli/engine/double_backward.py",  # kept values, with the history they had
        "gradcli/engine/custom.py",  # results and gradients of own Functions
        "gradcli/engine/autograd.py",  # gradients, where they begin and end
        "gradcli/engine/ops/creation/creation.py",  # from numbers
        "gradcli/engine/ops/creation/like.py",
        "gradcli/engine/ops/creation/ranges.py",
        "gradcli/engine/ops/elementwise/family.py",  # constants
        "gradcli/engine/ops/index/indexing.py",  # what is picked where nobody records it
        "gradcli/engine/ops/random/random.py",  # drawn numbers
        "gradcli/engine/ops/sequence/attention.py",  # the decomposition: a mask has a gradient
        "gradcli/engine/ops/loss/cross_entropy.py",  # the decomposition, where it gives a gradient
        "gradcli/engine/interop.py",  # other people's memory
        "gradcli/engine/optim/optimizer.py",  # state
        "gradcli/engine/optim/clip.py",  # the norm, which has no history
        "gradcli/engine/optim/muon.py",  # gradient and momentum, which have none either
        "gradcli/engine/nn/backward_hooks.py",  # what a hook looks at; tensors with a node
        "gradcli/engine/program/entry.py",  # what a replay gives, which has none either
        "gradcli/engine/origins.py",  # what a look at a call asks of its arrays
        "gradcli/engine/outside.py",  # where the host has the bytes of a tensor of a GPU
    }
    every = (PACKAGE / "engine").rglob("*.py")
    engine = [p for p in every if "gpu" not in p.parts]  # there it is an argument of a launch
    assert {named(p) for p in engine if called(p) & {"Tensor", "tensor.Tensor"}} <= allowed


def test_nothing_is_left_to_be_done() -> None:
    debt = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
    assert not [named(p) for p in tracked() if debt.search(p.read_text(errors="replace"))]


def build_file() -> str:
    return (PACKAGE / "engine" / "device" / "build.py").read_text()


def test_the_build_asks_for_no_unsafe_maths() -> None:
    flags = re.findall(r'^\s*"(-[^"]+)",$', build_file(), re.MULTILINE)
    assert "-O3" in flags
    assert "-ffp-contract=off" in flags
    assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-march=native"} & set(
        flags
    )
    assert not [named(p) for p in C if re.search(r"fast-math|pragma.*optimize", code_of(p))]


def test_denormals_survive_the_import() -> None:
    """-ffast-math, where it is linked in, flushes subnormals in the whole process."""
    program = "import gradcli.engine; print(5e-324 * 1.0, 2.0**-1074 > 0)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == ["5e-324", "True"]


def python_literals() -> set[str]:
    """Every text in the package, f-strings with their holes as stars."""
    texts: set[str] = set()
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            if isinstance(node, ast.JoinedStr):
                parts = (v.value if isinstance(v, ast.Constant) else "*" for v in node.values)
                texts.add("".join(str(part) for part in parts))
    return texts


def test_every_kernel_is_used() -> None:
    from gradcli.engine.device import cpu

    texts = python_literals()
    # f"{name}_backward" serves every kernel whose forward part is named.
    made = {t.replace("*", "") for t in texts if t.startswith("*_")}
    orphans = [
        kernel
        for kernel in cpu.KERNELS
        if kernel not in texts
        and not any(kernel.endswith(end) and kernel.removesuffix(end) in texts for end in made)
    ]
    assert not orphans


def test_every_kernel_that_python_names_exists() -> None:
    from gradcli.engine.device import cpu

    runners = ("run", "map_unary", "map_binary", "map_slope")
    first = [
        call.args[0]
        for path in (PACKAGE / "engine").rglob("*.py")
        for call in calls(ast.parse(path.read_text()))
        if ast.unparse(call.func) in runners and call.args
    ]
    texts = {a.value for a in first if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    assert texts
    assert not texts - set(cpu.KERNELS)


def test_help_imports_nothing_heavy() -> None:
    """`gradcli --help` answers at once because it loads neither engine nor YAML nor pydantic."""
    program = "import sys; from gradcli.cli.main import run; run(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"pydantic", "yaml", "cffi", "safetensors", "tqdm", "numpy", "gradcli.engine"}
    assert "gradcli.cli.main" in loaded
    assert not loaded & heavy


def test_the_engine_needs_no_numpy() -> None:
    program = "import sys; import gradcli.engine; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"


def test_there_is_one_conftest() -> None:
    """Two are one module to Python: types named in the first are looked up in the second."""
    found = [named(path) for path in (ROOT / "tests").rglob("conftest.py")]
    assert found == ["tests/conftest.py"]


def test_memory_is_counted_without_the_garbage_collector() -> None:
    """Through the fixture `allocated`; else what an earlier test left behind counts at random."""
    tests = set((ROOT / "tests").rglob("*.py")) - {Path(__file__), ROOT / "tests" / "conftest.py"}
    assert not [named(p) for p in sorted(tests) if "cpu.allocated(" in p.read_text()]
