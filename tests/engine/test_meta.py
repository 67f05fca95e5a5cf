"""The meta device: every op on it has the CPU's shapes, types and refusals, and no numbers."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from typing import Any

import pytest
from implied_refusals import refusals

from gradcli import engine
from gradcli.engine import Tensor, gradcheck, nn, optim
from gradcli.engine.device import meta, scope
from gradcli.engine.dtype import DTYPES
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.sample import Sample, Wrong
from gradcli.errors import DeviceError, GradcliError, ShapeError

NO_NUMBERS = "a tensor on 'meta' has a shape and a type but no numbers"
# The result's shape depends on numbers, or they are looked at before anything is computed.
ASKING = {
    "allclose",
    "argwhere",
    "bernoulli",
    "bernoulli_",
    "bincount",
    "equal",
    "getitem_by_tensor",
    "index_put",
    "index_put_",
    "masked_select",
    "multinomial",
    "nonzero",
    "normal",
    "one_hot",
    "repeat_interleave",
    "tensor_split",
    "unique",
    "unique_consecutive",
}
# Indices, counts and divisors that only the kernel looks at: there are none to refuse.
UNSEEN = {
    "div",
    "embedding",
    "flat_index",
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "masked_scatter",
    "scatter",
    "scatter_add",
    "take",
}


@pytest.fixture(autouse=True, scope="module")
def unused() -> Any:
    """Nobody looks for the device before and after."""
    before = list(scope.devices)
    assert meta.DEVICE not in before
    yield
    gc.collect()
    assert scope.devices == before


def inputs_on(device: str, sample: Sample, dtype: Any) -> list[Tensor | None]:
    made = gradcheck.make_inputs(sample, dtype=dtype)
    return [None if x is None else x.to(device) for x in made]


def facts(x: Tensor | None) -> object:
    """Strides count where there is more than one element along them."""
    if x is None:
        return None
    steps = [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1]
    return x.shape, x.dtype, steps if x.numel() else None, x.requires_grad


def forward_and_backward(op: Row, sample: Sample, device: str, dtype: Any) -> list[object]:
    inputs = inputs_on(device, sample, dtype)
    for x in inputs:
        if x is not None and x.is_floating_point() and op.differentiable:
            x.requires_grad_()
    with engine.device(device):
        outputs = gradcheck.call(op, sample, inputs)
        for y in outputs:
            if y.requires_grad:
                y.sum().backward(retain_graph=True)
    grads = [None if x is None else x.grad for x in inputs]
    if device == "meta" and sample.options.get("device") != "cpu":
        assert {y.device for y in outputs} <= {"meta"}
        assert {grad.device for grad in grads if grad is not None} <= {"meta"}
    return [facts(x) for x in (*outputs, *grads)]


@pytest.mark.parametrize("op", every_op(), ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [engine.float64, engine.bfloat16], ids=["float64", "bfloat16"])
def test_shapes_and_types_are_those_of_the_cpu(op: Row, dtype: Any) -> None:
    refused = 0
    for sample in op.samples:
        try:
            expected = forward_and_backward(op, sample, "cpu", dtype)
        except GradcliError:
            assert dtype is engine.bfloat16
            continue
        try:
            assert forward_and_backward(op, sample, "meta", dtype) == expected, str(sample)
        except DeviceError as error:
            assert error.message.startswith(NO_NUMBERS)
            refused += 1
    assert not refused or op.name in ASKING or op.name == "transfer"


def test_what_asks_for_numbers_is_listed() -> None:
    """Each of them does: a name that stands here for nothing is found."""
    asking = {
        op.name for op in every_op() for sample in op.samples if _asks(op, sample) and sample.inputs
    }
    assert asking - {"transfer"} == ASKING


def _asks(op: Row, sample: Sample) -> bool:
    try:
        gradcheck.call(op, sample, inputs_on("meta", sample, engine.float64))
    except DeviceError as error:
        return error.message.startswith(NO_NUMBERS)
    return False


@pytest.mark.parametrize(
    ("op", "wrong"),
    [
        pytest.param(op, one, id=f"{op.name}{one.sample}-{one.dtype}")
        for op in every_op()
        for one in refusals(op)
    ],
)
def test_wrong_calls_are_refused_with_the_same_sentence(op: Row, wrong: Wrong) -> None:
    dtype = DTYPES[wrong.dtype]
    said = []
    for device in ("cpu", "meta"):
        try:
            gradcheck.call(op, wrong.sample, inputs_on(device, wrong.sample, dtype))
            said.append("")
        except GradcliError as error:
            said.append(error.message)
    if said[1].startswith(NO_NUMBERS):
        assert op.name in ASKING
    elif not said[1]:
        assert op.name in UNSEEN
    else:
        assert said[0] == said[1]


ASKERS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x[0, 0]),
    "memoryview": lambda x: x.memoryview(),
    "to the CPU": lambda x: x.cpu(),
    "bfloat16": lambda x: x.bfloat16().tolist(),
    "where a mask holds": lambda x: x[x > 0],
}


@pytest.mark.parametrize("name", ASKERS)
def test_numbers_are_refused_in_one_sentence(name: str) -> None:
    x = engine.ones(2, 3).to("meta")
    with pytest.raises(DeviceError) as caught:
        ASKERS[name](x)
    assert caught.value.message.startswith(NO_NUMBERS)


def test_other_libraries_get_none() -> None:
    x = engine.ones(2).to("meta")
    for lend in (x.numpy, x.__dlpack__):
        with pytest.raises(DeviceError, match="the tensor lies on meta, not on the CPU"):
            lend()


def test_a_block_says_where_new_tensors_lie() -> None:
    with engine.device("meta") as there:
        assert there == "meta" and there.type == "meta" and there.index is None
        new = [
            engine.zeros(2),
            engine.tensor([1, 2]),
            engine.tensor(3.0),
            engine.arange(4),
            engine.rand(2),
            engine.randint(0, 3, (2,)),
            engine.linspace(0, 1, 5),
            engine.eye(3),
        ]
        with engine.device("cpu"):
            assert engine.zeros(2).device == "cpu"
    assert [x.device for x in new] == ["meta"] * len(new)
    assert engine.zeros(2).device == "cpu"
    assert repr(new[0]) == "tensor(..., device='meta', size=(2,))"


def test_results_lie_where_the_inputs_lie() -> None:
    x = engine.ones(2)
    with engine.device("meta"):
        assert [y.device for y in (x + x, x * 2, x.softmax(0), engine.zeros_like(x))] == ["cpu"] * 4
        assert (x + x).tolist() == [2.0, 2.0]
    moved = x.to(engine.device("meta"))
    assert moved.device == "meta" and (x + moved).device == "meta"
    assert moved.to("meta") is moved and copy.deepcopy(moved).device == "meta"
    with pytest.raises(DeviceError, match="this tensor lies on meta and another one of the call"):
        x.add_(moved)


@pytest.mark.usefixtures("allocated")  # it collects what earlier tests left in cycles
def test_the_device_is_in_use_as_long_as_somebody_may_look() -> None:
    with engine.device("meta"):
        assert meta.DEVICE in scope.devices
        x = engine.zeros(2)
    assert meta.DEVICE in scope.devices and (x * 2).device == "meta"
    del x
    assert meta.DEVICE not in scope.devices


def test_it_takes_no_memory(allocated: Callable[[], int]) -> None:
    before = allocated()
    with engine.device("meta"):
        model = nn.Sequential(*[nn.Linear(1 << 15, 1 << 15) for _ in range(100)])  # 429 GB
        assert model(engine.empty(1 << 20, 1 << 15)).shape == (1 << 20, 1 << 15)
        with pytest.raises(DeviceError, match="more than 2\\^61 bytes"):
            engine.empty(1 << 62)
    assert allocated() - before < 4096


def test_layers_refuse_what_they_refuse_on_the_cpu() -> None:
    with engine.device("meta"):
        layer, x = nn.Conv2d(3, 16, 7), engine.empty(1, 3, 4, 32)
        with pytest.raises(ShapeError, match="conv2d: the output would be -2 x 26"):
            layer(x)


INITS: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform_": nn.init.uniform_,
    "normal_": nn.init.normal_,
    "constant_": lambda w: nn.init.constant_(w, 0.5),
    "eye_": nn.init.eye_,
    "trunc_normal_": nn.init.trunc_normal_,
    "trunc_normal_ far out": lambda w: nn.init.trunc_normal_(w, a=5.0, b=6.0),
    "sparse_": lambda w: nn.init.sparse_(w, 0.5),
    "orthogonal_": nn.init.orthogonal_,
    "kaiming_normal_": nn.init.kaiming_normal_,
    "xavier_uniform_": nn.init.xavier_uniform_,
    "dirac_": lambda w: nn.init.dirac_(w.reshape(4, 2, 3)),
}


@pytest.mark.parametrize("name", INITS)
def test_first_values(name: str) -> None:
    with engine.device("meta"):
        assert INITS[name](engine.empty(4, 6)).device == "meta"


OPTIMIZERS = (
    optim.SGD,
    optim.Adam,
    optim.AdamW,
    optim.RMSprop,
    optim.Adagrad,
    optim.Adadelta,
    optim.NAdam,
    optim.Lion,
)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: one.__name__)
def test_a_step_keeps_what_it_keeps_on_the_cpu(optimizer: Any) -> None:
    found = []
    for device in ("cpu", "meta"):
        with engine.device(device):
            model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
            steps = optimizer(model.parameters(), lr=0.1)
            loss = nn.functional.mse_loss(model(engine.rand(5, 3)), engine.zeros(5, 4))
            loss.backward()
            optim.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
        grads = [p.grad for p in model.parameters()]
        kept = [x for name, x in steps.state_tensors().items() if not name.startswith("step")]
        assert {x.device for x in (*grads, *kept)} == {device}
        found.append([(x.shape, x.dtype) for x in (loss, *grads, *kept)])
    assert found[0] == found[1]
