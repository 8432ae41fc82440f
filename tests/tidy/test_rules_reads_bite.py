"""The rule about named reads complains about each record that is taken by its position."""

from __future__ import annotations

import pytest

from tests.tidy.rules_reads import record_fields, records_by_position
from tests.tidy.sources import Source, package_sources, parse

HEAD = "def decide(self, found: Sequence[Record | None], stamp: int):\n"
FIELDS = parse("src/strongroom/store/blob/body.py", "class Place:\n    beside: Sequence[Record]")


def _in(folder: str, text: str) -> Source:
    return parse(f"src/strongroom/{folder}/module.py", text)


def _complaints(source: Source) -> list[str]:
    return records_by_position(source, record_fields([FIELDS]))


@pytest.mark.parametrize(
    "body",
    [
        "found[0]",
        "found[-1]",
        "found[third - 2]",
        "found[_HEAD]",
        "found[1:]",
        "rows = found\n    rows[0]",
        "_, *rest = found\n    rest[0]",
        "rest = tuple(found[2:])",
        "rest = list(found)\n    rest[index]",
        "(rest := found)[0]",
        "def change(record):\n        return found[0]",
        "self.rows = found\n    self.rows[0]",
    ],
)
@pytest.mark.parametrize("folder", ["services/blob", "store/core", "importing"])
def test_a_position_is_found_whatever_its_name(folder: str, body: str) -> None:
    assert _complaints(_in(folder, f"{HEAD}    {body}\n"))


@pytest.mark.parametrize(
    "text",
    [
        "def decide(self, found: Found):\n    found.records(self.leaves)[0]",
        "def helper(share: ShareRecord, held: tuple[Record | None, ...]):\n    return held[1]",
        "def helper(place):\n    return place.beside[0]",
        "def decide(self, found: Found):\n    return Write(self.reads[0].key, None)",
        "async def look(services):\n    rows = await services.store.read(refs)\n    rows[0]",
        "async def look(self):\n    return (await self._store.read(refs))[0]",
    ],
)
def test_other_ways_to_a_position_are_found(text: str) -> None:
    assert len(_complaints(_in("services/file", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def decide(self, found: Found):\n    return found[self.share]",
        "def decide(self, found: Found):\n    pending, *leaves = found.records(self.leaves)",
        "def list_all(found: list[Range]):\n    return found[-1]",
        "def changed(found: Sequence[Record | None]):\n    return [one for one in found if one]",
        "def newest(where: Where):\n    return where.refs[-1]",
    ],
)
def test_names_and_other_sequences_are_not(text: str) -> None:
    assert _complaints(_in("services/file", text)) == []


def test_engines_and_the_owner_of_the_positions_may() -> None:
    text = f"{HEAD}    return found[0]\n"
    assert _complaints(_in("engines/memory", text)) == []
    assert _complaints(parse("src/strongroom/services/core/decisions.py", text)) == []


def test_the_rule_sees_the_fields_of_the_project() -> None:
    assert "beside" in record_fields(package_sources())
