"""What the commands of the coordination toolkit share: the store, and how errors end a command.

Lives here: `--store`, opening it, exit codes 75 and 76. Must not live here: any one command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    """A client of the store; errors of the toolkit end the command with one line."""
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
        with connect(store, label=label) as client:
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


def print_json(document: Any) -> None:
    """One document, on standard output."""
    typer.echo(json.dumps(document, ensure_ascii=False))
