"""The manifests and the batch script in examples/clusters fit what reads them."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from gradcli.cli.main import cli

CLUSTERS = Path(__file__).resolve().parents[2] / "examples" / "clusters"
MANIFESTS = sorted(CLUSTERS.glob("*.yaml"))
EMPTY = object()

# The part of the schema of MPIJob in kubeflow.org/v2beta1 (its CustomResourceDefinition), and of
# a pod's in Kubernetes, that the manifests use: a type, a map of keys, a list of one kind, or the
# words that are allowed. Keys with ! must be there; * stands for any name.
QUANTITY = (str, int)
CONTAINER = {
    "name!": str,
    "image!": str,
    "command": [str],
    "args": [str],
    "resources": {"limits": {"*": QUANTITY}, "requests": {"*": QUANTITY}},
    "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool}],
}
POD = {
    "containers!": [CONTAINER],
    "volumes": [{"name!": str, "persistentVolumeClaim": {"claimName!": str}}],
}
REPLICA = {
    "replicas": int,
    "restartPolicy": {"Always", "OnFailure", "Never", "ExitCode"},
    "template!": {"metadata": {"labels": {"*": str}}, "spec!": POD},
}
MPI_JOB = {
    "apiVersion!": {"kubeflow.org/v2beta1"},
    "kind!": {"MPIJob"},
    "metadata!": {"name!": str, "namespace": str, "labels": {"*": str}},
    "spec!": {
        "slotsPerWorker": int,
        "runLauncherAsWorker": bool,
        "runPolicy": {
            "cleanPodPolicy": {"None", "Running", "All"},
            "ttlSecondsAfterFinished": int,
            "activeDeadlineSeconds": int,
            "backoffLimit": int,
            "suspend": bool,
        },
        "sshAuthMountPath": str,
        "launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
        "mpiImplementation": {"OpenMPI", "Intel", "MPICH"},
        "mpiReplicaSpecs!": {"Launcher!": REPLICA, "Worker": REPLICA},
    },
}


def faults(value: Any, schema: Any, place: str = "") -> Iterator[str]:
    """Where a value does not fit its schema."""
    if isinstance(schema, dict):
        yield from faults_of_map(value, schema, place)
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield f"{place} is no list"
        for number, one in enumerate(value if isinstance(value, list) else ()):
            yield from faults(one, schema[0], f"{place}[{number}]")
    elif isinstance(schema, set):
        if value not in schema:
            yield f"{place} is {value!r}"
    elif not isinstance(value, schema) or (isinstance(value, bool) and schema is not bool):
        yield f"{place} is {value!r}"


def faults_of_map(value: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place} is no map"
        return
    keys = {name.rstrip("!"): inner for name, inner in schema.items()}
    for name in schema:
        if name.endswith("!") and name.rstrip("!") not in value:
            yield f"{place}.{name.rstrip('!')} is missing"
    for name, inner in value.items():
        if name not in keys and "*" not in keys:
            yield f"{place}.{name} is not known"
        else:
            yield from faults(inner, keys.get(name, keys.get("*")), f"{place}.{name}")


def manifest(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def parsed_options(words: list[str]) -> dict[str, Any]:
    """Those of a command line `gradcli ...`, which is parsed and not carried out."""
    assert words[0] == "gradcli"
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None
    with click.Context(command, resilient_parsing=True) as context:
        command.parse_args(context, list(words[2:]))
        return dict(context.params)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_fits_the_schema_of_the_operator(path: Path) -> None:
    assert list(faults(manifest(path), MPI_JOB)) == []


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_starts_a_rank_in_each_slot(path: Path) -> None:
    spec = manifest(path)["spec"]
    launcher, worker = (spec["mpiReplicaSpecs"][name] for name in ("Launcher", "Worker"))
    (container,) = launcher["template"]["spec"]["containers"]
    count = int(container["command"][container["command"].index("-n") + 1])
    assert count == spec["slotsPerWorker"] * worker["replicas"]
    assert parsed_options(container["args"])["continues"]
    limits = worker["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits.get("nvidia.com/gpu", spec["slotsPerWorker"]) == spec["slotsPerWorker"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_pods_have_the_volumes_that_they_mount(path: Path) -> None:
    for replica in manifest(path)["spec"]["mpiReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        mounted = {one["name"] for each in pod["containers"] for one in each["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["volumes"]}


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("spec", "slotPerWorker"), 8),
        (("spec", "slotsPerWorker"), "8"),
        (("spec", "runPolicy", "cleanPodPolicy"), "Sometimes"),
        (("spec", "mpiImplementation"), "LAM"),
        (("spec", "mpiReplicaSpecs", "Launcher"), EMPTY),
        (("spec", "mpiReplicaSpecs", "Worker", "restartPolicy"), "Maybe"),
        (("spec", "mpiReplicaSpecs", "Worker", "template", "spec", "containers"), {}),
        (("apiVersion",), "kubeflow.org/v1"),
    ],
    ids=lambda each: each[-1] if isinstance(each, tuple) else "",
)
def test_the_schema_finds_a_planted_fault(keys: tuple[str, ...], value: Any) -> None:
    wrong = copy.deepcopy(manifest(MANIFESTS[0]))
    *outer, last = keys
    place = wrong
    for key in outer:
        place = place[key]
    if value is EMPTY:
        del place[last]
    else:
        place[last] = value
    assert len(list(faults(wrong, MPI_JOB))) == 1


def test_the_batch_script_is_one() -> None:
    path = CLUSTERS / "train.slurm"
    subprocess.run(["bash", "-n", str(path)], check=True)
    text = path.read_text()
    options = set(re.findall(r"^#SBATCH --([\w-]+)", text, re.MULTILINE))
    assert {"signal", "requeue", "nodes", "ntasks-per-node"} <= options
    assert "#SBATCH --signal=TERM@120\n#SBATCH --requeue\n" in text
    (line,) = re.findall(r"^srun .*", text, re.MULTILINE)
    words = shlex.split(line)
    assert parsed_options(words[words.index("gradcli") :])["continues"]
