"""The options that say where a command finds accounts and roles.

Lives here: the options, and which of them decides. Must not live here: reading and changing
(files.py, database.py).

As with `serve`, a file that is named decides, and then a database. But a `--data` that is typed is
stronger than a database that only a variable names. So a command never changes another place than
the one that was typed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperOption

from strongroom.cli.exits import Exit, fail
from strongroom.cli.layout import CommandWithLayout

if TYPE_CHECKING:
    from strongroom.cli.identities.place import IdentityPlace
    from strongroom.database import DatabaseSettings

_DATA: Final = Path("strongroom-data")
_SCHEMA: Final = "strongroom"
_VARIABLE: Final = "STRONGROOM_STORE"
_GIVEN: Final = "strongroom.identities"
_STORE_HELP: Final = (
    "The PostgreSQL of serve --store, in place of files. STRONGROOM_STORE may have a password."
)


class PlaceCommand(CommandWithLayout):
    """A command with the options below. Its function gets the context, and asks `place_of`.

    Attributes:
        file_option: names a file in place of the one in --data.
        file_name: the name of the one in --data.
    """

    file_option = ""
    file_name = ""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        own = _path(self.file_option, f"The file (default: {self.file_name} in --data).")
        self.params += [
            _path("--data", "The data directory.", default=_DATA, envvar="STRONGROOM_DATA"),
            own,
            _text("--store", "URL", _STORE_HELP),
            _path("--store-file", "A file whose text is the URL of --store."),
            _text(
                "--store-schema",
                "NAME",
                "The schema that has the store's tables.",
                default=_SCHEMA,
                envvar=f"{_VARIABLE}_SCHEMA",
            ),
        ]

    def invoke(self, ctx: Any) -> Any:
        names = ("data", _parameter(self.file_option), "store", "store_file", "store_schema")
        ctx.meta[_GIVEN] = tuple(ctx.params.pop(name) for name in names)
        return super().invoke(ctx)


class AccountsCommand(PlaceCommand):
    """A command about accounts."""

    file_option = "--accounts-file"
    file_name = "accounts.json"


class RolesCommand(PlaceCommand):
    """A command about roles."""

    file_option = "--roles-file"
    file_name = "roles.json"


def place_of(context: Any) -> IdentityPlace:
    """Return where a command shall find accounts and roles. End it if its options disagree."""
    from strongroom.cli.identities.files import FilesPlace

    data, file, *_ = context.meta[_GIVEN]
    database = database_of(context)
    if database is not None:
        from strongroom.cli.identities.database import DatabasePlace

        return DatabasePlace(database)
    is_roles = isinstance(context.command, RolesCommand)
    return FilesPlace(data, **{"roles_file" if is_roles else "accounts_file": file})


def data_of(context: Any) -> tuple[Path, Path | None]:
    """Return --data, and the file that was named, if one was."""
    data, file, *_ = context.meta[_GIVEN]
    return data, file


def database_of(context: Any) -> DatabaseSettings | None:
    """Return the database that a command shall use; None = files."""
    _, file, url, url_file, schema = context.meta[_GIVEN]
    if url is None and url_file is None:
        is_typed = context.get_parameter_source("data").name == "COMMANDLINE"
        return None if file is not None or is_typed else _of_environment(schema)
    if url is not None and url_file is not None:
        fail(Exit.USAGE, "--store names a database; it does not go with --store-file")
    if file is not None:
        option = context.command.file_option
        fail(Exit.USAGE, f"{option} names a file; it does not go with a database")
    return _given(url, url_file, schema)


def typed_database_of(context: Any) -> DatabaseSettings:
    """Return the database that a command cannot do without."""
    _, _, url, url_file, schema = context.meta[_GIVEN]
    if url is not None and url_file is not None:
        fail(Exit.USAGE, "--store names a database; it does not go with --store-file")
    found = _of_environment(schema) if url is url_file is None else _given(url, url_file, schema)
    if found is None:
        fail(Exit.USAGE, f"which database? Give --store, --store-file or {_VARIABLE}")
    return found


def _given(url: str | None, file: Path | None, schema: str) -> DatabaseSettings:
    from strongroom.cli.flags.database import checked_url, url_of_file
    from strongroom.cli.flags.given import ValueSource
    from strongroom.database import DatabaseSettings

    _check_schema(schema)
    if file is not None:
        return DatabaseSettings(url_of_file(file, "--store-file"), schema=schema, file=file)
    assert url is not None
    checked = checked_url(url, "--store", ValueSource.COMMAND_LINE)
    return DatabaseSettings(checked, schema=schema)


def _of_environment(schema: str) -> DatabaseSettings | None:
    """Return the PostgreSQL that a variable names. Nodes that meet elsewhere name other stores by
    the same variable, which have no accounts."""
    from strongroom.cli.flags.database import checked_url, url_of_file
    from strongroom.cli.flags.given import ValueSource
    from strongroom.database import DatabaseSettings, is_postgres

    url = os.environ.get(_VARIABLE, "").strip()
    if is_postgres(url):
        _check_schema(schema)
        checked = checked_url(url, _VARIABLE, ValueSource.ENVIRONMENT)
        return DatabaseSettings(checked, schema=schema)
    file = os.environ.get(f"{_VARIABLE}_FILE", "").strip()
    if file and not url:
        _check_schema(schema)
        url = url_of_file(Path(file), f"{_VARIABLE}_FILE")
        return DatabaseSettings(url, schema=schema, file=Path(file))
    return None


def _check_schema(schema: str) -> None:
    from strongroom.cli.flags.database import SCHEMA

    try:
        SCHEMA.read(schema)
    except ValueError as error:
        fail(Exit.USAGE, f"--store-schema {schema!r}: {error}")


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _text(option: str, shown: str, text: str, **more: Any) -> TyperOption:
    return TyperOption(param_decls=[option], type=str, metavar=shown, help=text, **more)


def _path(option: str, text: str, **more: Any) -> TyperOption:
    """An option whose value is a path; its text is read as one when it is asked for."""
    return TyperOption(param_decls=[option], type=Path, metavar="PATH", help=text, **more)
