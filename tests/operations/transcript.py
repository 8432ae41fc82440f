"""Reads the hand-made transcript under docs/operations: rows, rules and example requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "operations"
COLUMNS = 13
RULE = re.compile(r"^- \*\*([A-Z]-[A-Z]{3}-\d\d)\*\* ", re.MULTILINE)
EXAMPLE = re.compile(r"^([A-Z]+) (/\S*)(?: \[(.*)\])? => (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One operation of the transcript."""

    operation: str
    id: str
    methods: tuple[str, ...]
    path: str
    query: dict[str, str]
    required: tuple[str, ...]
    optional: tuple[str, ...]
    conditions: frozenset[str]
    lease: str
    sas: str
    account_sas: str
    success: frozenset[int]
    served: bool


@dataclass(frozen=True, slots=True)
class Example:
    """One example request and its expected outcome."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    outcome: str


def rows(service: str) -> list[Row]:
    """Return the operation table of `service`."""
    found = []
    for line in (DOCS / f"{service}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| ") or len(cells) != COLUMNS or cells[0] == "operation":
            continue
        found.append(_row(cells))
    return found


def _row(cells: list[str]) -> Row:
    pairs = [] if cells[4] == "-" else [pair.split("=") for pair in cells[4].split("&")]
    return Row(
        cells[0],
        cells[1],
        tuple(cells[2].split(", ")),
        cells[3],
        {name: value.lower() for name, value in pairs},
        _list(cells[5]),
        _list(cells[6]),
        frozenset() if cells[7] == "none" else frozenset(cells[7].split()),
        cells[8],
        cells[9],
        cells[10],
        frozenset(int(code) for code in cells[11].split(", ")),
        cells[12] == "yes",
    )


def _list(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split(", "))


def rules_text(service: str) -> str:
    """The pages that have the rules of a service: its own, and those of its subjects."""
    pages = (DOCS / f"{service}.md", *sorted((DOCS / service).glob("*.md")))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def rule_numbers(service: str) -> list[str]:
    """Return the numbers of all rules of `service`."""
    return RULE.findall(rules_text(service))


def examples(service: str) -> list[Example]:
    """Return the example requests of `service`."""
    text = (DOCS / f"{service}-examples.md").read_text()
    return [
        Example(method, target, _headers(headers), outcome)
        for method, target, headers, outcome in EXAMPLE.findall(text)
    ]


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [pair.partition(":") for pair in text.split("; ")] if text else []
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)
