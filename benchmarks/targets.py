"""What the figures are to reach, and whether they do. A ratio above 1: gradcli is faster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from benchmarks import ranks_model
from benchmarks.grow_ratios import of_grow
from benchmarks.log_cost import shares
from benchmarks.medians import geometric_mean
from benchmarks.op_ratios import of_ops
from benchmarks.verdict import Verdict, at_least, at_most, ratio

OURS = ("gradcli eager", "gradcli captured", "gradcli scan")
ONE_CALL = ("gradcli eager", "gradcli captured")
TORCH = ("torch eager", "torch compile")
JAX = ("jax jit", "jax scan")
OUR_GENERATION = ("gradcli, 1 thread", "gradcli, 2 threads")
TORCH_GENERATION = ("torch, 1 thread", "torch, 2 threads")
PRODUCT_WAYS = {"the kernel": "gradcli c", "one captured call": "gradcli captured"}
PRODUCT_PEERS = ("torch", "numpy")

AGAINST_TORCH = {
    "W1": 8.0, "W2": 3.0, "W3": 1.2, "W4": 3.0, "W5": 1.4, "W6": 1.5, "W7": 1.4, "W8": 100.0,
}  # fmt: skip
AGAINST_JAX = {"W1": 2.0, "W2": 1.6, "W3": 1.0, "W4": 1.0, "W5": 1.0, "W6": 1.0, "W7": 1.0}
MATMUL_EACH, MATMUL_MEAN = 0.95, 1.2
GENERATION = {"1": 3.0, "8": 1.5}  # by rows of the batch
MEMORY = {"W2": 0.25, "W5": 0.4, "W6": 0.4}
MNIST97 = 6.0
PYTHON_BETWEEN = 10.0  # microseconds
TINY = 10.0
# On a GPU: shares of the device's own copy by family of kernels, ratios to torch's libraries.
OF_A_COPY = {"elementwise": 0.85, "layer norm": 0.85, "softmax": 0.85, "optimizer": 0.85}
GPU_PRODUCT, GPU_PRODUCT_BF16, GPU_MLP, GPU_GPT2 = 0.85, 0.40, 3.0, 1.0
# Exact sum / MPI_Allreduce, predicted / measured step, 2 ranks x 1 thread / 1 rank x 2 threads.
RANKS_SUM, RANKS_MODEL = 1.5, 0.15
RANKS_STEP = {"mnist": 1.4, "mnist_cnn": 1.05, "shakespeare_gpt": 1.05}
LOG, LOG_OF_TINY = 0.02, 0.05  # of a step; of one below half a millisecond
# A first start on a million rows of CSV: so many times pandas, seconds more, and megabytes.
DATA_CSV, DATA_CSV_TABLES, DATA_CSV_MORE, DATA_CSV_MB = 12.0, 2.0, 1.0, 250.0
# A second start beyond one without data, and ten steps on mapped arrays: seconds, and megabytes.
DATA_WAITING = 0.02  # of the time of steps
DATA_ENCODING = 1.2  # times the tokenizer alone
DATA_SECOND, DATA_MAPPED, DATA_MAPPED_MB = 0.3, 1.0, 150.0
SLOWER = 1.02  # than a revision of the past, in the median
SAME_COURSE = 1e-3  # relative difference of losses, and of products


def noisy(rows: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether any of these had too few undisturbed moments."""
    return any(rows.get(name, {}).get("noisy") for name in names)


def best(rows: Mapping[str, Any], names: Iterable[str], key: str = "ms") -> float | None:
    """The smallest figure of those who took part and trained the same thing."""
    figures = [
        float(rows[name][key])
        for name in names
        if name in rows and key in rows[name] and rows[name].get("same_course", True)
    ]
    return min(figures, default=None)


def compare(rows: Mapping[str, Any]) -> dict[str, float | bool | None]:
    """A workload's ratios: our best way against the best of each peer, and one call a step."""
    ours, one_call = best(rows, OURS), best(rows, ONE_CALL)
    torch, jax = best(rows, TORCH), best(rows, JAX)
    return {
        "torch": ratio(torch, ours),
        "torch_doubtful": noisy(rows, (*OURS, *TORCH)),
        "jax": ratio(jax, ours),
        "jax_doubtful": noisy(rows, (*OURS, *JAX)),
        "torch_one_call": ratio(torch, one_call),
        "jax_one_call": ratio(best(rows, ("jax jit",)), one_call),
    }


def of_workloads(result: Mapping[str, Any]) -> list[Verdict]:
    """Verdicts on the races, and on the time of Python between two steps."""
    verdicts = []
    for name, entry in result["workloads"].items():
        ratios = entry["ratios"]
        for peer, goals in (("torch", AGAINST_TORCH), ("jax", AGAINST_JAX)):
            if name in goals:
                what, doubtful = f"{name} against {peer}", ratios[f"{peer}_doubtful"]
                verdicts.append(at_least(what, ratios[peer], goals[name], doubtful))
    if "W8" in result["workloads"]:
        rows = result["workloads"]["W8"]["rows"]
        between, doubtful = python_between(rows), noisy(rows, (*OURS, "torch eager"))
        what = "microseconds of Python between steps"
        verdicts.append(at_most(what, between, PYTHON_BETWEEN, doubtful))
        faster = ratio(best(rows, ("torch eager",)), best(rows, ONE_CALL))
        what = "W8 with one call a step, against torch eager"
        verdicts.append(at_least(what, faster, TINY, doubtful))
    return verdicts


def python_between(rows: Mapping[str, Any]) -> float | None:
    """Microseconds that a captured step takes longer when Python calls each one."""
    stepped, scanned = best(rows, ("gradcli captured",)), best(rows, ("gradcli scan",))
    return None if stepped is None or scanned is None else (stepped - scanned) * 1e3


def compare_products(rows: Mapping[str, Any]) -> dict[str, float | None]:
    """A shape's ratios: the kernel by itself, and a call from Python, against the better peer."""
    peer = best(rows, PRODUCT_PEERS)
    return {what: ratio(peer, best(rows, (ours,))) for what, ours in PRODUCT_WAYS.items()}


def product_ratios(result: Mapping[str, Any], what: str) -> dict[str, float]:
    """By shape, where they could be measured."""
    ratios = {s: compare_products(entry["rows"])[what] for s, entry in result["shapes"].items()}
    return {shape: value for shape, value in ratios.items() if value is not None}


def product_mean(result: Mapping[str, Any], what: str) -> float | None:
    """Of all shapes together."""
    ratios = product_ratios(result, what)
    return geometric_mean(list(ratios.values())) if ratios else None


def of_matmul(result: Mapping[str, Any]) -> list[Verdict]:
    """The worst shape, and all of them together: of the kernel, and of a call from Python."""
    verdicts = []
    for what, ours in PRODUCT_WAYS.items():
        ratios = product_ratios(result, what)
        names = (ours, *PRODUCT_PEERS)
        doubtful = any(noisy(entry["rows"], names) for entry in result["shapes"].values())
        worst = min(ratios, key=lambda shape: ratios[shape], default=None)
        figure = None if worst is None else ratios[worst]
        where = f"matmul, {what}, the worst shape" + (f" ({worst})" if worst else "")
        mean = product_mean(result, what)
        verdicts += [
            at_least(where, figure, MATMUL_EACH, doubtful),
            at_least(f"matmul, {what}, geometric mean", mean, MATMUL_MEAN, doubtful),
        ]
    return verdicts


def of_generation(result: Mapping[str, Any]) -> list[Verdict]:
    """Our better number of threads against torch's."""
    return [
        at_least(
            f"tokens of {batch} at a time, times as fast as torch eager",
            entry["ratios"]["torch"],
            GENERATION[batch],
            noisy(entry["rows"], (*OUR_GENERATION, *TORCH_GENERATION)),
        )
        for batch, entry in result["batches"].items()
    ]


def of_memory(result: Mapping[str, Any]) -> list[Verdict]:
    """Our largest peak, captured or not, as a share of torch's smallest."""
    verdicts = []
    for name, rows in result["workloads"].items():
        peaks = [rows[way]["peak_mib"] for way in OURS if "peak_mib" in rows.get(way, {})]
        share = ratio(max(peaks, default=None), best(rows, TORCH, "peak_mib"))
        verdicts.append(at_most(f"{name}, peak memory as a share of torch's", share, MEMORY[name]))
    return verdicts


def of_startup(result: Mapping[str, Any]) -> list[Verdict]:
    """Nothing is promised but the time of --help, in the design."""
    row = result["rows"].get("gradcli --help", {})
    return [at_most("seconds of gradcli --help", row.get("seconds"), 0.15)]


def of_mnist97(result: Mapping[str, Any]) -> list[Verdict]:
    """Wall time from a cold process, the script in torch against ours."""
    rows = result["rows"]
    ours = best(rows, ("gradcli script", "gradcli train"), "seconds")
    torch = best(rows, ("torch script",), "seconds")
    return [
        at_least("MNIST to 97 %, times faster than torch", ratio(torch, ours), MNIST97),
        at_most("MNIST to 97 %, seconds", ours, 1.0),
    ]


def of_configs(result: Mapping[str, Any]) -> list[Verdict]:
    """Each config against each figure that it expects of itself."""
    verdicts = []
    for name, row in result["rows"].items():
        for metric, limit in row.get("expect", {}).items():
            comparison, value = limit.split()
            judge = at_least if comparison.startswith(">") else at_most
            verdicts.append(judge(f"{name}, {metric}", row["metrics"][metric], float(value)))
    return verdicts


def of_gpu_checks(result: Mapping[str, Any]) -> list[Verdict]:
    """Nothing may differ, nothing may be out of bounds."""
    failed = result["doctor"].get("failed")
    wrong = None if failed is None else float(len(failed))
    verdicts = [at_most("ops and samples that differ from the CPU", wrong, 0)]
    for name, row in result["graph"].items():
        differ = None
        if "steps" in row and not row["why_not_captured"]:
            differ = float(row["losses_that_differ"] + len(row["parameters_that_differ"]))
        what = f"{name}: losses and parameters that differ between replays and eager steps"
        verdicts.append(at_most(what, differ, 0))
    for tool in ("memcheck", "racecheck"):
        errors = result["sanitizer"].get(tool, {}).get("errors")
        verdicts.append(at_most(f"errors that {tool} finds", errors, 0))
    return verdicts


def of_gpu_kernels(result: Mapping[str, Any]) -> list[Verdict]:
    """The worst of each family against a copy; the product of 4096 against torch's."""
    verdicts = []
    rows = result["families"]["rows"]
    for family, limit in OF_A_COPY.items():
        mine = {name: row.get("share") for name, row in rows.items() if row["family"] == family}
        there = {name: share for name, share in mine.items() if share is not None}
        worst = min(there, key=lambda name: there[name], default="")
        what = f"{family}, share of a copy's bandwidth" + (f" ({worst})" if worst else "")
        verdicts.append(at_least(what, there.get(worst), limit))
        verdicts += [at_least(f"{n}: share", None, limit) for n in mine if n not in there]
    product = result["products"].get("matmul 4096x4096x4096", {})
    what = "matmul of 4096, times as fast as torch"
    verdicts += [
        at_least(f"{what} in float32", product.get("ratio"), GPU_PRODUCT),
        at_least(f"{what} in bfloat16", product.get("ratio_bf16"), GPU_PRODUCT_BF16),
    ]
    apart = {
        n: case["difference"] for n, case in result["products"].items() if "difference" in case
    }
    furthest = max(apart, key=lambda name: apart[name], default="")
    what = "products, furthest from torch's" + (f" ({furthest})" if furthest else "")
    verdicts.append(at_most(what, apart.get(furthest), SAME_COURSE))
    return verdicts


def gpu_ratio(workloads: Mapping[str, Any], name: str, peer: str, ours: str) -> float | None:
    """How many times as fast the best contender is whose name begins so."""
    rows = workloads.get(name, {}).get("rows", {})
    mine = best(rows, [row for row in rows if row.startswith(ours)])
    return ratio(best(rows, (peer,)), mine)


def of_gpu_training(result: Mapping[str, Any]) -> list[Verdict]:
    """Speed against torch eager, losses against the CPU's."""
    there = result["workloads"]
    what, peer = "MNIST MLP, times as fast as torch eager", "torch eager"
    verdicts = [at_least(what, gpu_ratio(there, "MNIST MLP", peer, "gradcli"), GPU_MLP)]
    what, peer = "GPT-2 124M, times as fast as torch eager in bfloat16", "torch eager bf16"
    verdicts.append(at_least(what, gpu_ratio(there, "GPT-2 124M", peer, "gradcli"), GPU_GPT2))
    for name, entry in there.items():
        off = entry["losses"].get("off_course")
        verdicts.append(at_most(f"{name}, losses off the CPU's", off, SAME_COURSE))
    return verdicts


def of_before(result: Mapping[str, Any]) -> list[Verdict]:
    """The same weights as the revision's, and nothing slower; doubtful where noise could decide."""
    verdicts = [
        at_most(f"{name}: weights that differ", None if "missing" in row else not row["same"], 0)
        for name, row in result["bits"].items()
    ]
    for name, row in result["times"].items():
        doubtful = "missing" not in row and row["low"] <= SLOWER <= row["high"]
        what = f"{name}: time, now / before"
        verdicts.append(at_most(what, row.get("ratio"), SLOWER, doubtful))
    return verdicts


def of_ranks(result: Mapping[str, Any]) -> list[Verdict]:
    """Sums against MPI's own, steps against threads, and how far the model is from steps."""
    verdicts = [
        at_most(
            f"exact sum of {row['length']:,} numbers / MPI_Allreduce",
            row["ratios"]["exact"],
            RANKS_SUM,
        )
        for row in result["sums"]
    ]
    for name, counts in ranks_model.checks(result).items():
        times = result["steps"][name]["ms"]
        pairs = zip(times[ranks_model.on_ranks(2)], times[ranks_model.THREADS], strict=True)
        step = median(there / threads for there, threads in pairs)
        verdicts.append(at_most(f"{name}: 2 ranks / 2 threads", step, RANKS_STEP[name]))
        for count, check in counts.items():
            what = f"{name}: error of the model on {count} ranks"
            verdicts.append(at_most(what, abs(check.error), RANKS_MODEL))
    return verdicts


def of_log(result: Mapping[str, Any]) -> list[Verdict]:
    """What the norm in the log takes of a run's steps."""
    return [
        at_most(f"{name}: grad_norm / steps", share, LOG_OF_TINY if tiny else LOG)
        for name, share, tiny in shares(result["rows"])
    ]


def of_data(result: Mapping[str, Any]) -> list[Verdict]:
    """First starts against pandas, second ones against a start that has nothing to read."""
    rows = {name: row for name, row in result["rows"].items() if "missing" not in row}
    verdicts = []
    for way, times in (("first", DATA_CSV), ("first with tables", DATA_CSV_TABLES)):
        row = rows.get("csv 1M", {})
        seconds = row.get(way, {}).get("seconds")
        limit = times * row.get("peer_seconds", 0.0) + DATA_CSV_MORE
        verdicts.append(at_most(f"csv 1M, seconds of the {way} start", seconds, limit))
        memory = row.get(way, {}).get("anonymous_mb")
        verdicts.append(at_most(f"csv 1M, megabytes of the {way} start", memory, DATA_CSV_MB))
    small = rows["start"]["second"]
    for name, row in rows.items():
        if name != "start":
            more = row["second"]["seconds"] - small["seconds"]
            what = f"{name}, seconds of a second start beyond one without data"
            verdicts.append(at_most(what, more, DATA_SECOND))
    if "bpe" in rows:
        row = rows["bpe"]
        more = row["first"]["seconds"] - small["seconds"]
        limit = DATA_ENCODING * row["peer_seconds"]
        verdicts.append(at_most("bpe, seconds of encoding beside start-up", more, limit))
    mapped = rows.get("npy", {}).get("first", {})
    steps = mapped["to_last_step"] - small["to_last_step"] if mapped else None
    verdicts.append(at_most("npy, seconds of ten steps beside start-up", steps, DATA_MAPPED))
    memory = mapped.get("anonymous_mb")
    verdicts.append(at_most("npy, megabytes beside the file", memory, DATA_MAPPED_MB))
    for name, share in result["waiting"].items():
        verdicts.append(at_most(f"{name}, share that waits for data", share, DATA_WAITING))
    return verdicts


VERDICTS = {
    "before": of_before,
    "workloads": of_workloads,
    "matmul": of_matmul,
    "generation": of_generation,
    "memory": of_memory,
    "startup": of_startup,
    "mnist97": of_mnist97,
    "configs": of_configs,
    "text": of_configs,
    "ranks": of_ranks,
    "log": of_log,
    "data": of_data,
    "ops": of_ops,
    "grow": of_grow,
    "gpu-checks": of_gpu_checks,
    "gpu-kernels": of_gpu_kernels,
    "gpu-training": of_gpu_training,
}
