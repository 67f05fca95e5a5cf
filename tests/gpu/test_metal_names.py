"""Every name of Metal that gradcli and the stand-in use is one that pyobjc has."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import metal_wheel
import pytest
from metal_standin import api, commands

ROOT = Path(__file__).parents[2]
GPU = ROOT / "gradcli" / "engine" / "device" / "gpu"
OURS = [GPU / name for name in ("metal.py", "metal_replay.py", "installed.py")]
# The stand-in's own business.
OWN = {"alloc", "init", "as_buffer", "run", "put", "buffers", "in_order"}
# Plain properties and methods of objects, of which pyobjc needs no metadata: they take and give
# objects, or numbers of which the runtime itself knows the kind. From Apple's documentation.
DOCUMENTED = {
    "setLanguageVersion:": "MTLCompileOptions.languageVersion",
    "setMathMode:": "MTLCompileOptions.mathMode, macOS 15",
    "setComputeFunction:": "MTLComputePipelineDescriptor.computeFunction",
    "setCommandTypes:": "MTLIndirectCommandBufferDescriptor.commandTypes",
    "setMaxKernelBufferBindCount:": "MTLIndirectCommandBufferDescriptor.maxKernelBufferBindCount",
    "localizedDescription": "NSError.localizedDescription",
}


def calls(path: Path) -> set[str]:
    """Names of the methods that a file calls, and of those it asks for in words."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    return found | {w for w in words if isinstance(w, str) and w.isidentifier() and w[-1] == "_"}


def of_module(path: Path) -> set[str]:
    """Names that a file takes from the module Metal."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("Mtl", "Metal")
    }


def methods() -> set[str]:
    """Selectors that the stand-in answers, as Python has them."""
    found: set[str] = set()
    for module in (api, commands):
        for _, one in inspect.getmembers(module, inspect.isclass):
            if one.__module__ in ("Metal", "metal_commands"):
                found |= {name for name, value in vars(one).items() if inspect.isfunction(value)}
    return {name for name in found if name[0] != "_"} - OWN


def selector(name: str) -> str:
    return name.replace("_", ":")


USED = sorted(
    {selector(name) for path in OURS for name in calls(path) if name[-1] == "_"}
    | {selector(name) for name in methods()}
)


@pytest.mark.parametrize("name", USED)
def test_a_selector_is_one_of_metals(name: str) -> None:
    assert name in metal_wheel.selectors() or name in DOCUMENTED


def test_what_is_taken_on_trust_is_used_and_nowhere_to_be_read() -> None:
    assert set(DOCUMENTED) <= set(USED)
    assert not set(DOCUMENTED) & metal_wheel.selectors()


def test_the_stand_in_answers_what_gradcli_says_and_no_more() -> None:
    said = {name for path in OURS for name in calls(path)}
    assert {name for name in said if name[-1] == "_"} <= methods()
    assert methods() <= said | {"length"}  # the stand-in asks that itself


def test_selectors_that_metal_has_not_are_found_out() -> None:
    assert "setBuffer:offset:atIndex:" in metal_wheel.selectors()
    assert not {"setBuffer:atIndex:offset:", "setbarrier", "setBarrier:"} & metal_wheel.selectors()


@pytest.mark.parametrize("name", sorted(set().union(*map(of_module, OURS)) - {"__name__"}))
def test_a_name_of_the_module_is_pyobjcs(name: str) -> None:
    ours = getattr(api, name)
    if isinstance(ours, int):
        assert metal_wheel.constants()[name] == ours
    elif inspect.isclass(ours):
        assert f'b"{name}"' in metal_wheel.metadata()
    else:
        assert f'"{name}"' in metal_wheel.metadata()


def test_the_stand_in_has_no_other_constants() -> None:
    numbers = {n: v for n, v in vars(api).items() if n.startswith("MTL") and isinstance(v, int)}
    assert numbers
    assert {n: metal_wheel.constants()[n] for n in numbers} == numbers
    assert numbers["MTLIndirectCommandTypeConcurrentDispatch"] == commands.CONCURRENT_DISPATCH


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("newLibraryWithSource:options:error:", 1),
        ("newComputePipelineStateWithDescriptor:options:reflection:error:", 1),
    ],
)
def test_errors_come_beside_results(name: str, most: int) -> None:
    assert metal_wheel.out_arguments(name) == most


def test_sizes_are_made_of_three() -> None:
    assert '"MTLSizeMake": (b"{MTLSize=QQQ}QQQ",)' in metal_wheel.metadata()
