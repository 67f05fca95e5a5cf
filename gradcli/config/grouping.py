"""The keys that every optimizer has: which parameters get options of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

from gradcli.config.merge import full
from gradcli.config.node import ErrorReport, Path, YamlNode
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.config.row import REQUIRED, Row
from gradcli.config.schema import check, schema_of
from gradcli.config.sections import NamedSection, choose
from gradcli.config.selection import Patterns, Some, select
from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.engine.kind import Bound
from gradcli.errors import OptionError
from gradcli.registry import closest

if TYPE_CHECKING:
    from gradcli.engine import optim

_TABLES = (nn.Embedding, nn.Positions)
Groups = Annotated[list[Any], Bound("a list of maps such as {match: [head], lr: 1e-3}")]


def grouping(
    no_decay: Patterns = [],  # noqa: B006
    groups: Groups = [],  # noqa: B006
) -> None:
    """No weight decay for `no_decay`; `groups` with options of their own."""


class GroupRow(Row):
    """What the parameters that `match` have instead of the optimizer's own options: any of them."""

    @property
    def fields(self) -> dict[str, Parameter]:
        """The patterns, and the optimizer's keys, each of which may be left out."""
        match = Parameter("match", Parameter.KEYWORD_ONLY, default=REQUIRED, annotation=Some)
        return {"match": match} | {
            key: option.replace(default=None, annotation=option.annotation | None)
            for key, option in super().fields.items()
        }


GROUPS = {
    name: GroupRow(
        row.make,
        skip=1,
        leave=[key for key in row.parameters if key.startswith("adamw")],
        types=row.types,
    )
    for name, row in OPTIMIZERS.items()
}


@dataclass(frozen=True)
class Grouped:
    """An optimizer before there is a model, and what is different for some of its parameters.

    Attributes:
        apart: options of parameters that are no matrices inside the model (hidden_matrices).
    """

    make: Callable[[Iterable[Any]], optim.Optimizer]
    no_decay: Sequence[str] = ()
    groups: Sequence[Mapping[str, Any]] = ()
    apart: Mapping[str, Any] = field(default_factory=dict)

    def optimizer(self, model: nn.Module) -> optim.Optimizer:
        """The optimizer of all parameters that are trained."""
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        options = self._options(model)
        if not any(options.values()):
            return self.make(trainable.values())
        # Those with the same options make one group, in the order of the model.
        groups: dict[tuple[tuple[str, Any], ...], list[Any]] = {}
        for name, parameter in trainable.items():
            key = tuple(sorted(options.get(name, {}).items()))
            groups.setdefault(key, []).append(parameter)
        try:
            return self.make({"params": some, **dict(key)} for key, some in groups.items())
        except OptionError as error:  # each group is fine, and two of them together are not
            raise OptionError(f"optim.groups: {error.message}") from None

    def patterns(self) -> Iterator[tuple[Path, Sequence[str]]]:
        """Its lists of patterns, each with the keys that lead to it."""
        yield ("no_decay",), self.no_decay
        for number, group in enumerate(self.groups):
            yield ("groups", number, "match"), group["match"]

    def _options(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        """The options of each parameter by name; a later group overrides an earlier one."""
        options: dict[str, dict[str, Any]] = {}
        if self.apart:
            names = dict(model.named_parameters()).keys() - hidden_matrices(model)
            options = {name: dict(self.apart) for name in names}
        for name in select(model, self.no_decay, "optim.no_decay"):
            options[name] = {**options.get(name, {}), "weight_decay": 0.0}
        for number, group in enumerate(self.groups):
            own = {key: value for key, value in group.items() if key != "match"}
            for name in select(model, group["match"], f"optim.groups.{number}.match"):
                options[name] = {**options.get(name, {}), **own}
        return options


def hidden_matrices(model: nn.Module) -> set[str]:
    """Names of the matrices that are neither tables of rows nor those of the last layer with one.

    The weights of an optimizer that turns a matrix as a whole.
    """
    owners = {
        name: name.rpartition(".")[0]
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter.ndim == 2
    }
    head = next(reversed(owners.values()), None)
    return {
        name
        for name, owner in owners.items()
        if owner != head and not isinstance(model.get_submodule(owner), _TABLES)
    }


def choose_optimizer(node: YamlNode | None, report: ErrorReport) -> NamedSection | None:
    """Read the `optim:` section: the optimizer's keys and those of its groups."""
    if node is None or node.broken:
        return None
    section = full(node)
    if not isinstance(section.value, dict):
        return choose("optim", node, OPTIMIZERS, report)
    shared = {key for key in section.map() if _is_shared(key, section)}
    own = {key: item for key, item in section.map().items() if key not in shared}
    choice = choose("optim", replace(section, value=own), OPTIMIZERS, report)
    settings = {key: section.map()[key] for key in sorted(shared)}
    values = check(replace(section, value=settings), schema_of(grouping), "optim.", report)
    name = section.map().get("name")
    groups = _groups(settings.get("groups"), str(name.value) if name else "", choice, report)
    if choice is None or values is None or groups is None:
        return None
    apart = {"adamw": True} if choice.name == "muon" else {}
    grouped = Grouped(choice.instance, values["no_decay"], groups, apart)
    options = {"no_decay": values["no_decay"], "groups": groups}
    explicit = {key: value for key, value in options.items() if key in shared}
    return NamedSection(choice.name, {**choice.values, **explicit}, grouped)


def _is_shared(key: str, section: YamlNode) -> bool:
    """A key of every optimizer, or a word that is no key of this one and most like such a key."""
    shared = schema_of(grouping).hints
    name = section.map().get("name")
    make = OPTIMIZERS.get(str(name.value)) if name else None
    own = schema_of(make).hints if make else {}
    return closest(key, ["name", *own, *shared]) in shared


def _groups(
    node: YamlNode | None, name: str, optimizer: NamedSection | None, report: ErrorReport
) -> list[dict[str, Any]] | None:
    """The keys that each group sets; None after an error, or if the optimizer is unknown."""
    if name not in GROUPS:
        return None
    groups = [
        _group(item, f"optim.groups.{number}", name, optimizer, report)
        for number, item in enumerate(node.list() if node else [])
    ]
    right = [group for group in groups if group is not None]
    return right if len(right) == len(groups) else None


def _group(
    item: YamlNode, where: str, name: str, optimizer: NamedSection | None, report: ErrorReport
) -> dict[str, Any] | None:
    """Check one group over the optimizer's own options."""
    values = check(item, schema_of(GROUPS[name]), f"{where}.", report, f"{where} ({name})")
    if values is None or optimizer is None:
        return None
    group = {key: value for key, value in values.items() if value is not None}
    options = {key: value for key, value in group.items() if key != "match"}
    try:
        OPTIMIZERS[name](**{**optimizer.values, **options})
    except OptionError as error:
        report.error("E104", f"{where} ({name}): {error.message}", item.location)
        return None
    return group
