"""`strongroom files`: list the handles that SMB clients have open, and close them by force.

Lives here: flags, and what is shown. Must not live here: requests to the server
(file_service.py), what a close by force ends (services/file/handles/closing.py). Source: "List
Handles", "Force Close Handles".
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail
from strongroom.cli.identities.options import AccountsCommand, place_of
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.cli.file_service import FileService, OpenHandle
    from strongroom.coordination.stores.azure.account import AzureAccount

_HELP = """
List and close the handles that SMB clients have open on a running server.

PLACE is SHARE, or SHARE/PATH for one directory or file. For a share, the
command covers all files and directories in it. For a directory, it covers
that directory alone; --recursive adds everything below it.

The command asks the File service of AZURE_STORAGE_CONNECTION_STRING.
Without that variable it asks this machine's server with the development
account. --account takes the key from the accounts file in --data, or from the
PostgreSQL of serve --store (--store, --store-file, STRONGROOM_STORE). --endpoint
names another server.

Examples

  strongroom files handles documents
  strongroom files handles documents/reports --recursive --json
  strongroom files handles documents --account orders --data /srv/strongroom
  strongroom files close documents --handle 4611686018427387905
  strongroom files close documents/reports/march.xlsx --all
  strongroom files handles documents --endpoint https://example.net:10003
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")

DEFAULT_ENDPOINT = "http://127.0.0.1:10003"
Place = Annotated[str, typer.Argument(help="SHARE or SHARE/PATH.")]
Recursive = Annotated[
    bool, typer.Option("--recursive", help="Include everything below the directory, at any depth.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AccountName = Annotated[str | None, typer.Option("--account", help="Use the key of this account.")]
Endpoint = Annotated[
    str | None, typer.Option(help=f"URL of the File service (default: {DEFAULT_ENDPOINT}).")
]


@app.command("handles", cls=AccountsCommand)
def handles(
    context: typer.Context,
    place: Place,
    recursive: Recursive = False,
    as_json: AsJson = False,
    account: AccountName = None,
    *,
    endpoint: Endpoint = None,
) -> None:
    """List the handles that SMB clients have open in a share, a directory or a file."""
    path, below = _path_of(place, recursive)
    with _file_service(context, account, endpoint) as service:
        opens = list(service.handles(path, below=below))
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in opens], indent=2))
        return
    if not opens:
        typer.echo(f"No client of SMB has anything open in {plain(path)}.")
    for one in opens:
        typer.echo(_line(one))


@app.command("close", cls=AccountsCommand)
def close(
    context: typer.Context,
    place: Place,
    handle: Annotated[
        str | None, typer.Option("--handle", help="The id of one handle, as `handles` shows it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Close every handle.")] = False,
    recursive: Recursive = False,
    as_json: AsJson = False,
    *,
    account: AccountName = None,
    endpoint: Endpoint = None,
) -> None:
    """Close handles of SMB clients by force. Their locks are freed. Data that a client has cached
    and not sent is lost. A file that is marked for deletion on close is deleted. The exit code is
    1 if there is no such handle."""
    if (handle is None) != everything:
        fail(Exit.USAGE, "say which: --handle ID for one, or --all")
    if handle is not None and not (handle.isascii() and handle.isdigit()):
        fail(Exit.USAGE, f"--handle {handle!r}: give the number that 'files handles' shows")
    path, below = _path_of(place, recursive)
    with _file_service(context, account, endpoint) as service:
        closed, failed = service.close(path, handle or "*", below=below)
    if as_json:
        typer.echo(json.dumps({"closed": closed, "failed": failed}))
    else:
        typer.echo(f"{counted(closed, 'handles')} {'is' if closed == 1 else 'are'} closed.")
    if failed:
        fail(Exit.REFUSED, f"{counted(failed, 'handles')} could not be closed")
    if handle is not None and not closed:
        fail(Exit.REFUSED, f"nobody has a handle {handle} open in {plain(path)}")


def _path_of(place: str, recursive: bool) -> tuple[str, bool]:
    """Return the path that `place` names, and whether everything below it is included."""
    path = place.strip("/")
    share, _, below = path.partition("/")
    if not share:
        fail(Exit.USAGE, f"{place!r}: give SHARE or SHARE/PATH")
    if not _is_unicode(path):
        fail(Exit.USAGE, f"{place!r}: names of shares and files are UTF-8")
    return path, recursive or not below


@contextmanager
def _file_service(
    context: typer.Context, name: str | None, endpoint: str | None
) -> Iterator[FileService]:
    """Yield the File service that the flags name.

    If it refuses a request or does not answer, the command ends with a message of one line.
    """
    from strongroom.cli.file_service import FileService, RequestRefused, ServerUnavailable

    try:
        yield FileService(_account(context, name, endpoint))
    except RequestRefused as error:
        fail(Exit.REFUSED, plain(str(error)))
    except ServerUnavailable as error:
        fail(Exit.UNAVAILABLE, plain(str(error)))


def _is_unicode(text: str) -> bool:
    """Return whether an argument of the command line was UTF-8."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _account(context: typer.Context, name: str | None, endpoint: str | None) -> AzureAccount:
    from strongroom.cli.file_service import is_url, with_endpoint
    from strongroom.coordination.errors import Unsupported
    from strongroom.coordination.stores.azure.account import (
        CONNECTION_STRING,
        DEVELOPMENT_NAME,
        AzureAccount,
        account_of,
    )

    if endpoint is not None and not is_url(endpoint):
        fail(Exit.USAGE, f"--endpoint {endpoint!r}: give a URL such as {DEFAULT_ENDPOINT}")
    if name is not None:
        kept = place_of(context)
        known = next((one for one in kept.accounts() if one.name == name), None)
        if known is None:
            fail(Exit.SETTINGS, f"there is no account {name!r} in {kept.accounts_at}")
        account = AzureAccount(name, known.keys[0], "")
        return with_endpoint(account, endpoint or DEFAULT_ENDPOINT)
    text = os.environ.get(CONNECTION_STRING, "") or "UseDevelopmentStorage=true"
    try:
        account = account_of(text, "file", f"{DEFAULT_ENDPOINT}/{DEVELOPMENT_NAME}")
    except Unsupported as error:
        fail(Exit.SETTINGS, str(error))
    if endpoint is not None:
        return with_endpoint(account, endpoint)
    if not is_url(account.endpoint):
        fail(Exit.SETTINGS, f"{CONNECTION_STRING}: {account.endpoint!r} is no URL")
    return account


def _line(one: OpenHandle) -> str:
    # The root of a share has an empty path.
    rights = "+".join(one.rights) or "-"
    words = (one.handle, one.client, one.opened, rights, f"/{one.path}")
    return "  ".join(map(plain, words))
