"""What docs/debugging.md names without running it exists. `tests/pages` runs the rest."""

from __future__ import annotations

import re

from tests.tidy.sources import ROOT

_TEXT = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")


def test_each_file_that_the_page_names_exists() -> None:
    named = re.findall(r"\b((?:tests|benchmarks)/[\w/]+\.(?:py|md))", _TEXT)
    inside = re.findall(r"`((?:store|engines)/[\w/]+\.py)", _TEXT)
    assert named and inside
    for path in (*named, *(f"src/strongroom/{one}" for one in inside)):
        assert (ROOT / path).is_file(), path


def test_each_test_that_the_page_names_exists() -> None:
    found = re.findall(r"(tests/\S+\.py)::(\w+)\[(\w+)-(\d+)\]", _TEXT)
    assert found
    for path, name, play, _ in found:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name}(" in text and play in text, name
