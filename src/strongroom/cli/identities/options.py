"""The options that say where a command finds accounts and roles.

Lives here: the options, and which of them decides. Must not live here: reading and changing
(files.py, database.py).

As with `serve`, a file that is named decides, and then a database. But a `--data` that is typed is
stronger than a database that only a variable names. So a command never changes another place than
the one that was typed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperOption

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.url_as_directory import DATA_IS_URL, refuse_urls
from strongroom.cli.layout import CommandWithLayout

if TYPE_CHECKING:
    from strongroom.cli.flags.chosen_database import DatabaseChoice
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
        ctx.meta[_GIVEN] = given = tuple(ctx.params.pop(name) for name in names)
        refuse_urls(f"--data {DATA_IS_URL}", given[0])
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
    _, file, *_ = context.meta[_GIVEN]
    choice = _choice(context)
    if choice.is_given and file is not None:
        option = context.command.file_option
        fail(Exit.USAGE, f"{option} names a file; it does not go with a database")
    is_typed = context.get_parameter_source("data").name == "COMMANDLINE"
    if not choice.is_given and (file is not None or is_typed):
        return None
    return choice.database_if_any()


def typed_database_of(context: Any) -> DatabaseSettings:
    """Return the database that a command cannot do without."""
    return _choice(context).database()


def _choice(context: Any) -> DatabaseChoice:
    from strongroom.cli.flags.chosen_database import DatabaseChoice

    _, _, url, url_file, schema = context.meta[_GIVEN]
    return DatabaseChoice(url, url_file, schema)


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _text(option: str, shown: str, text: str, **more: Any) -> TyperOption:
    return TyperOption(param_decls=[option], type=str, metavar=shown, help=text, **more)


def _path(option: str, text: str, **more: Any) -> TyperOption:
    """An option whose value is a path; its text is read as one when it is asked for."""
    return TyperOption(param_decls=[option], type=Path, metavar="PATH", help=text, **more)
