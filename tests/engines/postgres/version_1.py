"""A store as the program of commit 7d3060d0 made it, with version 1 of the tables.

`version_1.sql` is what `strongroom store init --print-sql` printed there, for the schema SCHEMA.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.engines.postgres.servers import Administrator, fresh_schema

VERSION_1: Final = Path(__file__).with_name("version_1.sql")


def make_version_1(administrator: Administrator, schema: str = "") -> str:
    """Make an empty store; return its schema."""
    named = schema or fresh_schema()
    administrator.run(VERSION_1.read_text("utf-8").replace('"SCHEMA"', f'"{named}"'))
    return named


def version_of(administrator: Administrator, schema: str) -> int:
    return int(administrator.value(f"SELECT version FROM {schema}.store"))


@contextmanager
def version_1(administrator: Administrator) -> Iterator[str]:
    """An empty store, by its schema."""
    schema = make_version_1(administrator)
    try:
        yield schema
    finally:
        administrator.run(f"DROP SCHEMA {schema} CASCADE")


def silent(text: str) -> None:
    """What a migration says is not looked at."""
