"""The page's types are those of the server's documents."""

from __future__ import annotations

from tests.tidy import console_types


def test_the_types_are_those_of_the_documents() -> None:
    written = console_types.FILE.read_text(encoding="utf-8")
    assert written == console_types.text(), "run: python -m tests.tidy.console_types"
