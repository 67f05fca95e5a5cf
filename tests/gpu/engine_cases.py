"""What test_cuda_engine.py runs on the stand-in for NVIDIA's driver, each in its own process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import outside_cases
import pytest
from cuda.bindings import driver
from cuda_cases import Counts

from gradcli import engine, errors
from gradcli.engine import outside
from gradcli.engine.device import cpu
from gradcli.engine.device.dlpack import Loan
from gradcli.engine.device.gpu import opened
from gradcli.engine.device.gpu.device import Memory
from gradcli.engine.device.meta import Imagined


def the_engine_computes_on_it() -> None:
    found = []
    for device in ("cpu", "cuda"):
        x = engine.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]]).to(device)
        y = engine.gelu(x) @ x.transpose(0, 1)
        assert y.device == device
        found.append([value for row in y.tolist() for value in row])
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def a_captured_step_is_one_launch() -> None:
    """However many kernels a step has."""
    w = engine.randn(5, 3).to("cuda").requires_grad_()
    optimizer = engine.optim.Adam([w], lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (x @ w).tanh().square().sum()
        loss.backward()
        optimizer.step()
        return loss

    captured = engine.capture(step, on_fallback=pytest.fail)
    x = engine.randn(4, 5).to("cuda")
    for _ in range(2):
        captured(x)
    (program,) = captured.programs
    counts = Counts()
    before, graphs = counts.launches, counts.graph_launches
    for _ in range(10):
        program.replay([], [])
    assert len(program.calls) > 3
    assert (counts.launches - before, counts.graph_launches - graphs) == (0, 10)


def a_function_of_python_cuts_it_in_two() -> None:
    """Two in a step make three launches; the bits are the eager step's."""
    outside_cases.check_bits("cuda")
    outside_cases.check_failure("cuda")
    one = outside_cases.Doubling("cuda")
    captured = engine.capture(one.step, on_fallback=pytest.fail)
    rows = engine.rand(5, 3, 4).to("cuda")
    captured.scan(rows[:2])
    counts = Counts()
    graphs, calls = counts.graph_launches, one.calls
    captured.scan(rows)
    assert (counts.graph_launches - graphs, one.calls - calls) == (3 * 5, 2 * 5)


def pinned_memory_goes_back() -> None:
    """That of a tensor is one block for as long as somebody has the tensor or the block."""
    device = opened.device("cuda")
    assert device is not None
    free: list[int] = []
    give_back = driver.cuMemFreeHost
    driver.cuMemFreeHost = lambda at: free.append(at) or give_back(at)
    x = engine.tensor([1.0, 2.0, 3.0]).to("cuda")
    here = outside.host(x)
    assert outside.host(x[1:]).array.storage is here.array.storage
    outside.call(partial(here.mul_, 2), [x], [x])
    assert x.tolist() == [2.0, 4.0, 6.0]
    at = cpu.address(here.array.storage)
    del x
    outside.host(engine.zeros(2).to("cuda"))
    assert here.tolist() == [2.0, 4.0, 6.0]
    assert at not in free
    del here
    outside.host(engine.zeros(2).to("cuda"))
    assert at in free


def memory_that_nobody_uses_goes_back_to_the_driver() -> None:
    """Other processes, and torch in this one, see it free."""
    x = engine.zeros(1000).to("cuda")
    free = free_bytes()
    big = engine.zeros(1000, 1000).to("cuda")
    doubled = big + big
    assert free_bytes() <= free - 8_000_000
    del big, doubled
    trim()
    assert free_bytes() >= free
    assert x.tolist() == [0.0] * 1000


def a_captured_step_holds_its_memory_once() -> None:
    """What the eager steps before it used is not kept beside it."""
    x = engine.randn(512, 512).to("cuda")
    x.tolist()
    before, size = free_bytes(), 4 * x.numel()

    def step(x: Any) -> Any:
        layers = [x]
        for _ in range(8):
            layers.append(layers[-1].softmax(-1))
        return sum(layers[1:], layers[0]).sum()

    captured = engine.capture(step, on_fallback=pytest.fail)
    for _ in range(3):
        captured(x).item()
    (program,) = captured.programs
    used = before - free_bytes()
    assert used <= program.arena_bytes + 2 * size, f"{used:,} for {program.arena_bytes:,}"


def each_of_two_devices_computes_with_its_own_memory() -> None:
    x = engine.randn(40, 50)
    first, second = x.to("cuda"), x.to("cuda:1")
    assert (first.device, second.device) == ("cuda", "cuda:1")
    assert x.to("cuda:0").device == "cuda"
    free = {name: free_bytes(name) for name in ("cuda", "cuda:1")}
    big = engine.zeros(500, 500).to("cuda:1")
    assert free_bytes("cuda") == free["cuda"]
    assert free_bytes("cuda:1") <= free["cuda:1"] - big.numel() * 4
    gradients = []
    for there in (first, second):
        there = there.detach().requires_grad_()
        y = (there @ there.t()).softmax(-1)
        assert y.device == there.device
        y.square().sum().backward()
        assert there.grad is not None and there.grad.device == there.device
        gradients.append(there.grad.tolist())
    assert gradients[0] == gradients[1]
    moved = first.to("cuda:1")
    assert moved.device == "cuda:1" and moved.tolist() == x.tolist()
    w = engine.ones(3).to("cuda").requires_grad_()
    (w.to("cuda:1") * 2).sum().backward()
    assert w.grad is not None and (w.grad.device, w.grad.tolist()) == ("cuda", [2.0] * 3)


def tensors_of_two_devices_do_not_meet() -> None:
    x, y = engine.ones(3, 3).to("cuda"), engine.ones(3, 3).to("cuda:1")
    calls: list[Callable[[], object]] = [
        lambda: x + y,
        lambda: y @ x,
        lambda: x.add_(y),
        lambda: x.copy_(y),
        lambda: engine.cat([y, x]),
        lambda: engine.where(x > 0, y, y),
        lambda: x.index_select(0, engine.tensor([1]).to("cuda:1")),
        lambda: x.__setitem__((0,), y[0]),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(errors.DeviceError) as caught:
            call()
        said = caught.value.message
        assert "lies on cuda" in said and "move one of them: x.to('cuda" in said, number
    assert x.tolist() == y.tolist() == [[1.0] * 3] * 3


def a_model_is_trained_on_the_second_device() -> None:
    found = []
    for device in ("cuda", "cuda:1"):
        engine.manual_seed(1)
        net = engine.nn.Sequential(engine.nn.Linear(6, 5), engine.nn.Tanh(), engine.nn.Linear(5, 3))
        net.to(device)
        optimizer = engine.optim.Adam(net.parameters(), lr=0.1)
        x = engine.randn(7, 6).to(device)

        def step(x: Any, net: Any = net, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        captured = engine.capture(step, on_fallback=pytest.fail)
        losses = [captured(x).item() for _ in range(5)]
        (program,) = captured.programs
        assert program.gpu.name == device
        found.append((losses, [p.tolist() for p in net.parameters()]))
    assert found[0] == found[1]


def a_step_over_two_devices_stays_eager() -> None:
    x, y = engine.ones(3).to("cuda"), engine.ones(3).to("cuda:1")
    said: list[str] = []
    captured = engine.capture(lambda x, y: (x.exp(), y.exp()), on_fallback=said.append)
    for _ in range(4):
        one, two = captured(x, y)
        assert (one.device, two.device) == ("cuda", "cuda:1")
        assert one.tolist() == two.tolist()
    assert len(said) == 1 and "uses cuda" in said[0] and "capture one for each device" in said[0]


def a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(errors.DeviceError) as caught:
        engine.ones(3).to("cuda:2")
    said = caught.value.message
    assert said == (
        "device 'cuda:2' cannot be used: there is no GPU 2: NVIDIA's driver shows "
        "2 GPUs, numbers 0 to 1"
    )
    net, optimizer = engine.nn.Sequential(), engine.optim.SGD([engine.ones(1).requires_grad_()])
    for to in (net.to, optimizer.to):
        with pytest.raises(errors.DeviceError):
            to("cuda:7")


def threads_compute_at_the_same_time() -> None:
    """Eager ops, numbers sent and read, gradients, and one step that all of them call."""
    w = engine.randn(6, 5).to("cuda")
    rows = [engine.randn(4, 6) for _ in range(8)]

    def step(x: Any) -> Any:
        return ((x @ w).tanh().softmax(-1) * 3).sum(0)

    def gradient(x: Any) -> Any:
        x = x.to("cuda").requires_grad_()
        step(x).square().sum().backward()
        return x.grad.tolist()

    expected = [(step(x.to("cuda")).tolist(), gradient(x)) for x in rows]
    shared = engine.capture(step, on_fallback=pytest.fail)
    for x in rows[:3]:
        shared(x.to("cuda"))

    def work(number: int) -> None:
        captured = engine.capture(step, on_fallback=pytest.fail)
        for turn in range(15):
            x, (values, slopes) = rows[number], expected[number]
            there = x.to("cuda")
            run = (captured, shared, step)[turn % 3]
            assert run(there).tolist() == values, f"thread {number}, turn {turn}"
            assert gradient(x) == slopes, f"thread {number}, turn {turn}"

    with ThreadPoolExecutor(len(rows)) as threads:
        for done in [threads.submit(work, number) for number in range(len(rows))]:
            done.result()


def memory_may_go_while_python_ends() -> None:
    """Whoever holds a tensor until modules lose their names hears nothing of it."""
    x = engine.ones(3).to("cuda")
    captured = engine.capture(lambda x: (x * 2).sum(), on_fallback=pytest.fail)
    for _ in range(3):
        captured(x)
    kept = (x, captured, engine.from_dlpack(engine.ones(3)), engine.ones(3).__dlpack__())
    kept = (*kept, engine.ones(3).to("meta"))
    with_last_words = {
        one
        for name, module in sys.modules.items()
        if name.startswith("gradcli.")
        for one in vars(module).values()
        if isinstance(one, type) and hasattr(one, "__del__")
    }
    assert with_last_words == {Memory, Loan, Imagined}, "the others are to be held here, too"
    # A module that is emptied after the engine's, which `anchor` keeps until then.
    errors.kept = kept  # type: ignore[attr-defined]
    sys.anchor = list(sys.modules.values())  # type: ignore[attr-defined]


def trim() -> None:
    gpu = opened.device("cuda")
    assert gpu is not None
    gpu.trim()


def free_bytes(device: str = "cuda") -> int:
    """As nvidia-smi shows them."""
    gpu = opened.device(device)
    assert gpu is not None
    gpu.driver.free_memory()  # makes this device the thread's
    status, free, _ = driver.cuMemGetInfo()
    assert not status.value
    return int(free)
