"""What the engine over PostgreSQL asks of a database is in the list of the page for operators."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operators" / "scaling.md").read_text(encoding="utf-8")
ENGINE = ROOT / "src" / "strongroom" / "engines" / "postgres"
# Functions, catalogues and hidden columns that are PostgreSQL's own; plain SQL is not found.
_OWN = re.compile(
    r"\b(?:pg_\w+|has_\w+_privilege|hashtext\w*|to_reg\w+|set_config|current_setting|aclexplode"
    r"|x(?:min|max)|\w+_timestamp|gen_random_uuid|uuid_send|to_jsonb|sha256)\b(?= ?[(=.,)\s])"
)
# Programs, files, and what only names something.
_OTHERS = {"pg_dump", "pg_hba", "pg_temp", "pg_type"}


def used(folder: Path) -> set[str]:
    """The names in the Python and SQL files of a folder."""
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".sql")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    found = {name.removesuffix("_shared") for text in texts for name in _OWN.findall(text)}
    return found - _OTHERS


def missing(names: set[str], page: str) -> list[str]:
    return sorted(name for name in names if not re.search(rf"`[^`]*\b{name}\b[^`]*`", page))


def test_each_feature_of_postgresql_is_in_the_list() -> None:
    names = used(ENGINE)
    assert {"pg_advisory_xact_lock", "pg_notify", "xmax", "clock_timestamp"} <= names
    assert missing(names, PAGE) == []


@pytest.mark.parametrize(
    "statement", ["SELECT pg_sleep(1)", "transaction_timestamp()", "FROM pg_locks l"]
)
def test_a_feature_that_is_not_in_the_list_is_found(tmp_path: Path, statement: str) -> None:
    (tmp_path / "some.sql").write_text(statement, encoding="utf-8")
    assert len(missing(used(tmp_path), PAGE)) == 1
