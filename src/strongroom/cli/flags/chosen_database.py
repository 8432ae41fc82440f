"""The PostgreSQL that a command is told to use, and what it needs for that.

Lives here: whether a URL, a file or a variable decides. Must not live here: what a URL says, and
the flags of `serve` (database.py).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.database import SCHEMA, checked_url, url_of_file
from strongroom.cli.flags.given import ValueSource
from strongroom.database import DatabaseSettings, is_postgres

_VARIABLE: Final = "STRONGROOM_STORE"


# No struct: its text must not show the password.
@dataclass(frozen=True, slots=True)
class DatabaseChoice:
    """What the arguments of a command say of its database. What cannot be used ends the command.

    Attributes:
        label: of the URL, in errors.
        schema_label: of the schema, in errors.
    """

    url: str | None = field(repr=False)
    file: Path | None
    schema: str
    label: str = "--store"
    schema_label: str = "--store-schema"

    @property
    def is_given(self) -> bool:
        """Whether an argument names a database. It is stronger than a variable."""
        return self.url is not None or self.file is not None

    def database(self) -> DatabaseSettings:
        """Return the database without which the command can do nothing."""
        found = self._of_arguments() if self.is_given else self._of_environment()
        if found is None:
            url = self.label if self.label.startswith("--") else "its URL"
            fail(Exit.USAGE, f"which database? Give {url}, --store-file or {_VARIABLE}")
        return found

    def database_if_any(self) -> DatabaseSettings | None:
        """Return the database; None = nothing names one. Nodes that meet elsewhere name other
        stores by the same variable. These count as none."""
        if self.is_given:
            return self._of_arguments()
        url = _variable(_VARIABLE)
        return None if url and not is_postgres(url) else self._of_environment()

    def check_schema(self) -> None:
        try:
            SCHEMA.read(self.schema)
        except ValueError as error:
            fail(Exit.USAGE, f"{self.schema_label} {self.schema!r}: {error}")

    def _of_arguments(self) -> DatabaseSettings:
        if self.url is not None and self.file is not None:
            fail(Exit.USAGE, f"{self.label} names a database; it does not go with --store-file")
        self.check_schema()
        if self.file is not None:
            return self._of_file(self.file, "--store-file")
        assert self.url is not None
        checked = checked_url(self.url, self.label, ValueSource.COMMAND_LINE)
        return DatabaseSettings(checked, schema=self.schema)

    def _of_environment(self) -> DatabaseSettings | None:
        url, file = _variable(_VARIABLE), _variable(f"{_VARIABLE}_FILE")
        if not url and not file:
            return None
        if url and file:
            fail(
                Exit.SETTINGS,
                f"{_VARIABLE} names a database; it does not go with {_VARIABLE}_FILE: unset one",
            )
        self.check_schema()
        if not url:
            return self._of_file(Path(file), f"{_VARIABLE}_FILE")
        checked = checked_url(url, _VARIABLE, ValueSource.ENVIRONMENT)
        return DatabaseSettings(checked, schema=self.schema)

    def _of_file(self, file: Path, label: str) -> DatabaseSettings:
        return DatabaseSettings(url_of_file(file, label), schema=self.schema, file=file)


def need_driver() -> None:
    """End the command if the driver is not installed."""
    try:
        import psycopg  # noqa: F401 - what the engine needs
    except ImportError as error:
        fail(
            Exit.SETTINGS,
            f"a store in PostgreSQL needs the extra: pip install strongroom[postgres] ({error})",
        )


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()
