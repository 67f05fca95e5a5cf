"""What a training does not load: each module is paid for at every start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Of tables, the rows that the config does not name; of the engine, what only Python code calls.
NEEDLESS = {
    "gradcli.data.csv",
    "gradcli.data.folder",
    "gradcli.data.loader",
    "gradcli.data.text",
    # Small data is read at each start.
    "gradcli.cli.data_bar",
    "gradcli.data.prepared",
    "gradcli.engine.describe",
    "gradcli.engine.gradcheck",
    "gradcli.engine.optim.lr_scheduler",
    "gradcli.engine.stubs",
    "gradcli.train.generate",
    "gradcli.train.verification",
    "gradcli.train.metrics.counts",
    "gradcli.train.metrics.ranks",
    "gradcli.train.metrics.values",
    # What several ranks need.
    "gradcli.engine.distributed.exact",
    "gradcli.engine.distributed.gpu_sum",
    "gradcli.engine.distributed.gpus",
    "gradcli.engine.distributed.mpi",
    "gradcli.engine.distributed.pulse",
    "gradcli.engine.distributed.sum",
    "gradcli.engine.distributed.tensors",
    "gradcli.train.agreement",
    "gradcli.train.division",
    "gradcli.train.unfinished",
    "termios",
    # What a config without mistakes needs no judge for, and what says versions beside folders.
    "gradcli.config.model",
    "pydantic",
    "importlib.metadata",
    "email",
    "socket",
}


def test_a_training_loads_only_what_its_config_names(tmp_path: Path) -> None:
    program = (
        "import sys; from gradcli.cli.main import run; code = run(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    words = ["train", "configs/mnist.yaml", "--max-steps", "1", "--runs", str(tmp_path)]
    child = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    modules = set(child.stderr.splitlines()[-1].split())
    assert "gradcli.train.metrics.labels" in modules
    assert not NEEDLESS & modules


def test_what_is_loaded_late_has_its_name() -> None:
    program = "from gradcli.engine import optim; print(optim.lr_scheduler.StepLR.__name__)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.stdout == "StepLR\n"


def test_the_readers_are_loaded_without_what_prepares_data() -> None:
    program = "import sys, gradcli.data; print('gradcli.data.prepared' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.stdout == "False\n"


def test_what_makes_a_page_is_loaded_when_the_result_is_saved(tmp_path: Path) -> None:
    program = (
        "import glob, json, sys\n"
        "late = 'jinja2', 'gradcli.report.page', 'gradcli.bench.sheet'\n"
        "def watch(event, arguments):\n"
        "    if event == 'import' and arguments[0] in late:\n"
        "        [status] = glob.glob(sys.argv[-1] + '/*/*/status.json')\n"
        "        print(arguments[0], json.load(open(status))['status'], file=sys.stderr)\n"
        "sys.addaudithook(watch)\n"
        "from gradcli.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    words = ["train", "configs/penguins.yaml", "--runs", str(tmp_path)]
    child = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    lines = set(child.stderr.splitlines())
    late = ("jinja2", "gradcli.report.page", "gradcli.bench.sheet")
    assert {f"{name} finished" for name in late} == {one for one in lines if one.startswith(late)}
