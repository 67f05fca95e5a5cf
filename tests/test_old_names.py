"""Names that changed: the old ones still work, and warn."""

from importlib import import_module

import pytest

from gradcli.errors import ConfigError, Location


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [("gradcli.errors", "Place", "Location"), ("gradcli.data", "Facts", "DataSpec")],
)
def test_an_old_name_gives_the_same_class_and_warns(module: str, old: str, new: str) -> None:
    owner = import_module(module)
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(owner, old) is getattr(owner, new)


@pytest.mark.parametrize("module", ["gradcli.errors", "gradcli.data"])
def test_a_name_that_never_was_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match="Nowhere"):
        import_module(module).Nowhere  # noqa: B018


def test_an_error_still_has_its_place() -> None:
    error = ConfigError("wrong", location=Location("a.yaml", 3, 4))
    with pytest.warns(DeprecationWarning, match="location"):
        assert error.place is error.location


def test_an_error_still_takes_its_place_by_the_old_keyword() -> None:
    with pytest.warns(DeprecationWarning, match="place is now location"):
        error = ConfigError("wrong", place=Location("a.yaml", 3))  # type: ignore[call-arg]
    assert error.location == Location("a.yaml", 3)
