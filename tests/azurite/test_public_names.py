"""strongroom-azurite imports what docs/reference/serving.md lists; its strongroom is exact."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import strongroom
import strongroom_azurite
from tests.azurite.installed import DISTRIBUTION, ROOT

PAGE = ROOT / "docs" / "reference" / "serving.md"
MODULES = sorted((DISTRIBUTION / "src").rglob("*.py"))


def listed(page: str) -> set[str]:
    """Return the names that the page shows."""
    return set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))


def used(text: str) -> Iterator[str]:
    """Yield every name of the package that a module imports, with its module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] == "strongroom")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports would hide a name"
            if (node.module or "").split(".")[0] == "strongroom":
                yield from (f"{node.module}.{one.name}" for one in node.names)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_a_module_imports_only_listed_names(module: Path) -> None:
    names = {*used(module.read_text(encoding="utf-8"))}
    assert names - listed(PAGE.read_text(encoding="utf-8")) == set()


def test_the_check_finds_a_name_that_is_not_listed() -> None:
    text = "import strongroom.app, strongroom_x\ndef f():\n    from strongroom.store import keys"
    assert [*used(text)] == ["strongroom.app", "strongroom.store.keys"]
    assert MODULES


def test_the_listed_names_exist() -> None:
    names = listed(PAGE.read_text(encoding="utf-8"))
    assert len(names) > 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_it_requires_exactly_its_strongroom() -> None:
    with open(DISTRIBUTION / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    version = strongroom.__version__
    assert project["version"] == strongroom_azurite.__version__ == version
    assert project["dependencies"] == [f"strongroom=={version}"]


def test_its_licence_is_that_of_the_project() -> None:
    assert (DISTRIBUTION / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_installed_distribution_is_what_the_folder_has(commands: Path) -> None:
    """The tests of tables import the folder, and those of processes run the wheel: both agree."""
    [installed] = commands.parent.glob("lib/*/site-packages/strongroom_azurite")
    for module in MODULES:
        name = module.relative_to(DISTRIBUTION / "src" / "strongroom_azurite")
        assert (installed / name).read_bytes() == module.read_bytes()
    assert (installed / "py.typed").exists()
    [facts] = commands.parent.glob("lib/*/site-packages/strongroom_azurite-*.dist-info/METADATA")
    text = facts.read_text(encoding="utf-8")
    assert f"\nRequires-Dist: strongroom=={strongroom.__version__}\n" in text
    assert f"\nVersion: {strongroom.__version__}\n" in text
