"""The store of the toolkit's commands, and how its errors end a command.

Lives here: `--store`, opening it, exit codes 75 and 76. Must not live here: any one command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strongroom.cli.coordination.waiting import printing_warnings
from strongroom.cli.exits import Exit, fail

if TYPE_CHECKING:
    from strongroom.coordination import Client

STORE_HELP = (
    "Where the nodes meet: azure://ACCOUNT/CONTAINER, etcd://HOST:2379, postgres://..., "
    "redis://..., s3://BUCKET, file:///FOLDER. Default: the Strongroom on this machine."
)
StoreUrl = Annotated[str, typer.Option("--store", help=STORE_HELP, envvar="STRONGROOM_STORE")]
DEFAULT_STORE = "azure://"
AsJson = Annotated[bool, typer.Option("--json", help="For scripts: one JSON document.")]


@contextmanager
def client_of(store: str, label: str = "") -> Iterator[Client]:
    """Yield a client of the store; an error of the toolkit ends the command with one line.

    The toolkit's warnings are printed too, one line each, even without a terminal.
    """
    from strongroom.coordination import (
        CoordinationError,
        CoordTimeout,
        LockLost,
        StoreRefused,
        StoreUnavailable,
        Unsupported,
        connect,
    )

    try:
        with printing_warnings(), connect(store, label=label) as client:
            yield client
    except CoordTimeout as error:
        fail(Exit.NOT_ACQUIRED, str(error))
    except LockLost as error:
        fail(Exit.LOST, str(error))
    except (Unsupported, StoreRefused) as error:
        fail(Exit.SETTINGS, str(error))
    except StoreUnavailable as error:
        fail(Exit.UNAVAILABLE, f"the store does not answer: {error}")
    except CoordinationError as error:
        fail(Exit.REFUSED, str(error))


def json_of(flag: str, text: str | None) -> Any:
    """Return the JSON value of a flag; None if the flag was not given."""
    try:
        return None if text is None else json.loads(text, parse_constant=_no_json)
    except RecursionError:
        fail(Exit.USAGE, f"{flag} is JSON of too many levels")
    except ValueError as error:
        fail(Exit.USAGE, f"{flag} is no JSON: {error}")


def _no_json(text: str) -> None:
    raise ValueError(f"{text} is no number")


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json_text(document))


def json_text(document: Any) -> str:
    """Return a document as text that can be encoded: half a surrogate pair stays an escape."""
    text = json.dumps(document, ensure_ascii=False)
    return text if text.isascii() or _is_text(text) else json.dumps(document)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
