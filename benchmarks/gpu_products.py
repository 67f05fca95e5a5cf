"""Matrix products, convolutions and attention: TFLOP/s by shape, beside PyTorch's own libraries.

Both compute the same numbers, in float32 with TF32 off, and their results are compared. Matrix
products and convolutions are timed in bfloat16 and with TF32 too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks import gpu_device
from benchmarks.gpu_device import Effort
from benchmarks.gpu_torch import Peer
from benchmarks.race import Say
from gradcli import engine
from gradcli.bench import launches
from gradcli.bench.launches import Contender
from gradcli.engine import Tensor
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.nn import functional as F

OURS, THEIRS, THEIRS_BF16 = "gradcli", "torch", "torch bf16"
OURS_BF16, OURS_TF32, THEIRS_TF32 = "gradcli bf16", "gradcli tf32", "torch tf32"


@dataclass(frozen=True)
class Case:
    """One shape of one op.

    Attributes:
        ours, theirs: take the inputs; theirs takes torch.nn.functional first.
        backward: the time of the gradients of all inputs, not of the result.
        flops: multiplications and additions that the formula needs.
        rounds: tensor cores can do it, in bfloat16 and with TF32.
    """

    name: str
    flops: float
    inputs: tuple[tuple[int, ...], ...]
    ours: Callable[..., Tensor]
    theirs: Callable[..., Any]
    backward: bool = False
    rounds: bool = False


def _matmul(m: int, k: int, n: int, how: str = "") -> Case:
    """The product a @ b; with `how` "a.t" or "b.t" one of them lies transposed."""
    left, right = (k, m) if how == "a.t" else (m, k), (n, k) if how == "b.t" else (k, n)

    def product(a: Any, b: Any) -> Any:
        return (a.t() if how == "a.t" else a) @ (b.t() if how == "b.t" else b)

    name = f"matmul {m}x{k}x{n}" + (f", {how}" if how else "")
    theirs = lambda functional, a, b: product(a, b)  # noqa: E731 -- said in one line
    return Case(name, 2 * m * k * n, (left, right), product, theirs, rounds=True)


def _conv(batch: int, into: int, side: int, out: int, kernel: int, backward: bool) -> Case:
    """A convolution with as much padding as keeps the sides."""
    flops = 2 * batch * out * side**2 * into * kernel**2
    shapes = ((batch, into, side, side), (out, into, kernel, kernel))
    name = f"conv {batch}x{into}x{side}x{side} {out}x{kernel}x{kernel}"
    pad = kernel // 2
    return Case(
        name + (", backward" if backward else ""),
        flops * (2 if backward else 1),
        shapes,
        lambda x, w: F.conv2d(x, w, padding=pad),
        lambda functional, x, w: functional.conv2d(x, w, padding=pad),
        backward,
        rounds=True,
    )


def _attention(
    batch: int, heads: int, steps: int, width: int, causal: bool, backward: bool
) -> Case:
    """Queries, keys and values of one shape."""
    pairs = steps * (steps + 1) // 2 if causal else steps**2
    shape = (batch, heads, steps, width)
    parts = (", causal" if causal else "") + (", backward" if backward else "")
    return Case(
        f"attention {'x'.join(map(str, shape))}{parts}",
        2 * batch * heads * pairs * width * (5 if backward else 2),
        (shape,) * 3,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        lambda functional, q, k, v: functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal
        ),
        backward,
    )


CASES = (
    *(_matmul(n, n, n) for n in (1024, 2048, 4096, 8192)),
    *(_matmul(4096, 4096, 4096, how) for how in ("a.t", "b.t")),
    _matmul(4096, 768, 3072),
    _matmul(4096, 3072, 768),
    _matmul(4096, 768, 50257),
    *(
        _conv(*shape, backward)
        for shape in ((64, 1, 28, 16, 5), (256, 16, 32, 32, 3), (64, 64, 56, 64, 3))
        for backward in (False, True)
    ),
    *(
        _attention(*shape, backward)
        for shape in ((8, 12, 1024, 64, True), (4, 12, 1024, 64, False), (2, 16, 4096, 128, True))
        for backward in (False, True)
    ),
)
QUICK = (
    _matmul(33, 20, 17),
    _matmul(20, 33, 8, "b.t"),
    *(_conv(2, 3, 6, 4, 3, backward) for backward in (False, True)),
    *(_attention(1, 2, 9, 16, True, backward) for backward in (False, True)),
)


def products(gpu: GPU, peer: Peer | None, quick: bool, say: Say) -> dict[str, Any]:
    """Every case, ours and PyTorch's in turns."""
    effort = gpu_device.QUICK if quick else Effort(times=5)
    outcome = {}
    for case in QUICK if quick else CASES:
        outcome[case.name] = _case(gpu, peer, case, effort)
        say(f"  {case.name}: {_sentence(outcome[case.name])}")
        gpu.trim()
        if peer:
            peer.clear()
    return outcome


def _case(gpu: GPU, peer: Peer | None, case: Case, effort: Effort) -> dict[str, Any]:
    generator = engine.Generator(1)
    values = [engine.randn(*shape, generator=generator) for shape in case.inputs]
    rows: dict[str, Any] = {OURS: {}}
    contenders: dict[str, Contender] = {}
    results: dict[str, Any] = {}
    makers: dict[str, Callable[[], tuple[Contender, Any]]] = {OURS: lambda: ours(gpu, case, values)}
    if case.rounds:
        makers[OURS_BF16] = lambda: ours(gpu, case, values, engine.bfloat16)
        makers[OURS_TF32] = lambda: ours(gpu, case, values, precision="high")
    if peer:
        makers[THEIRS] = lambda: theirs(peer, case, values)
    if peer and case.rounds:
        makers[THEIRS_BF16] = lambda: theirs(peer, case, values, peer.torch.bfloat16)
        makers[THEIRS_TF32] = lambda: theirs(peer, case, values, rounds=True)
    for name, make in makers.items():
        try:
            contenders[name], results[name] = make()
        except Exception as error:  # out of memory, a kernel that is missing: others go on
            rows[name] = {"missing": f"{type(error).__name__}: {error}"[:300]}
    for name, outcome in gpu_device.timed(contenders, effort).items():
        rows[name] = {**outcome.as_json(), "tflops": round(case.flops / outcome.ms / 1e9, 3)}
    return {"gflop": round(case.flops / 1e9, 3), "rows": rows, **_compared(rows, results)}


def ours(
    gpu: GPU,
    case: Case,
    values: Iterable[Tensor],
    dtype: Any = engine.float32,
    precision: str = "highest",
) -> tuple[Contender, list[float]]:
    """The launches of a case on the device, and the first numbers of what they make."""
    before = engine.get_float32_matmul_precision()
    engine.set_float32_matmul_precision(precision)
    try:
        return _ours(gpu, case, values, dtype)
    finally:
        engine.set_float32_matmul_precision(before)


def _ours(
    gpu: GPU, case: Case, values: Iterable[Tensor], dtype: Any
) -> tuple[Contender, list[float]]:
    there = (tensor.to(gpu.name).to(dtype) for tensor in values)
    inputs = [tensor.requires_grad_(case.backward) for tensor in there]
    y = case.ours(*inputs)
    g = engine.ones_like(y.detach())
    with launches.record(gpu) as calls:
        if case.backward:
            result = engine.grad(y, inputs, g, retain_graph=True)[-1]
        else:
            result = case.ours(*inputs)
    assert result is not None, "the input asked for its gradient"
    replays = launches.replays(gpu, calls)
    alive = (inputs, y, g, result)

    def ready(count: int) -> launches.Run:
        assert alive, "what the launches read and write lives as long as they may be replayed"
        return replays(count)

    return ready, result.detach()[:1].to("cpu").to(engine.float32).reshape(-1).tolist()


def theirs(
    peer: Peer, case: Case, values: Iterable[Tensor], dtype: Any = None, *, rounds: bool = False
) -> tuple[Contender, list[float]]:
    """PyTorch's calls, and the first numbers of what they make."""
    torch = peer.torch
    functional = torch.nn.functional
    inputs = [peer.tensor_of(tensor).to(dtype or torch.float32) for tensor in values]
    if case.backward:
        inputs = [x.requires_grad_() for x in inputs]
        y = case.theirs(functional, *inputs)
        g = torch.ones_like(y)

        def work() -> Any:
            return torch.autograd.grad(y, inputs, g, retain_graph=True)[-1]
    else:

        def work() -> Any:
            return case.theirs(functional, *inputs)

    if rounds:
        work = peer.rounding(work)
    return peer.calls(work), work()[:1].detach().float().reshape(-1).tolist()


def _compared(rows: dict[str, Any], results: dict[str, list[float]]) -> dict[str, Any]:
    """Times as fast as PyTorch, and how far the results are from each other."""
    outcome: dict[str, Any] = {"ratio": None, "ratio_bf16": None, "ratio_tf32": None}
    times = {name: row["ms"] for name, row in rows.items() if "ms" in row}
    for key, how in (("ratio", ""), ("ratio_bf16", " bf16"), ("ratio_tf32", " tf32")):
        pair = times.get(f"{THEIRS}{how}"), times.get(f"{OURS}{how}")
        if pair[0] is not None and pair[1]:
            outcome[key] = round(pair[0] / pair[1], 3)
    if OURS in results and THEIRS in results:
        largest = max(map(abs, results[THEIRS]), default=0.0)
        pairs = zip(results[OURS], results[THEIRS], strict=True)
        outcome["difference"] = max((abs(a - b) for a, b in pairs), default=0.0) / (largest or 1.0)
    return outcome


def _sentence(case: dict[str, Any]) -> str:
    row = case["rows"][OURS]
    if "missing" in row:
        return str(row["missing"])
    ratio = "" if case["ratio"] is None else f", {case['ratio']:.2f} times as fast as torch"
    return f"{row['tflops']:.2f} TFLOP/s{ratio}"
