"""The reference of the public Python API names all that is public, once, and nothing else."""

from __future__ import annotations

import importlib
import re

from strongroom import coordination, testing
from tests.tidy.sources import ROOT

REFERENCE = ROOT / "docs" / "reference"


def named(page: str) -> list[str]:
    """The names that a page of the reference shows with their docstrings."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


def test_every_public_name_of_the_toolkit_is_shown_once() -> None:
    shown = {name.rpartition(".")[2]: found(name) for name in named("coordination.md")}
    assert len(shown) == len(named("coordination.md"))
    assert shown == {name: getattr(coordination, name) for name in coordination.__all__}


def test_the_servers_for_tests_are_shown() -> None:
    shown = named("testing.md")
    for name in testing.__all__:
        assert f"strongroom.testing.server.{name}" in shown


def test_what_is_shown_is_there_and_says_what_it_is() -> None:
    for name in (*named("testing.md"), *named("coordination.md")):
        assert found(name) is not None, name


def found(name: str) -> object:
    """The object of a dotted name, or its module."""
    owner, _, last = name.rpartition(".")
    return getattr(importlib.import_module(owner), last, None) or importlib.import_module(name)
