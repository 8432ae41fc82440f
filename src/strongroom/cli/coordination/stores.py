"""The store of the toolkit's commands, and how its errors end a command.

Lives here: `--store`, opening it, exit codes 75 and 76.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strongroom.cli.coordination.waiting import printing_warnings
from strongroom.cli.exits import Exit, fail
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.coordination import Client

STORE_HELP = (
    "Where the nodes meet: http://HOST:PORT/ACCOUNT/CONTAINER (a Strongroom), "
    "azure://ACCOUNT/CONTAINER, etcd://HOST:2379, postgres://..., redis://..., s3://BUCKET, "
    "file:///FOLDER. Default: the Strongroom on this machine."
)
StoreUrl = Annotated[str, typer.Option("--store", help=STORE_HELP, envvar="STRONGROOM_STORE")]
DEFAULT_STORE = "azure://"
_FIRST_ANSWER_S = 2.0
_FIRST_RETRY_S = 0.1
_PROBED_KEY = "check/answers"
_LINK_CHARS_MAX = 200
AsJson = Annotated[bool, typer.Option("--json", help="For scripts: one JSON document.")]


@contextmanager
def client_of(store: str, label: str = "") -> Iterator[Client]:
    """Yield a client of the store; an error of the toolkit ends the command with one line.

    A store that does not answer at the beginning ends the command too. The toolkit's warnings are
    printed, one line each, even without a terminal.
    """
    from strongroom.coordination import (
        CoordinationError,
        CoordTimeout,
        IdsUnavailable,
        LockLost,
        StoreRefused,
        StoreUnavailable,
        Unsupported,
        connect,
    )

    try:
        with printing_warnings(), connect(store, label=label) as client:
            _await_answer(client, store)
            yield client
    except CoordTimeout as error:
        fail(Exit.NOT_ACQUIRED, str(error))
    except LockLost as error:
        fail(Exit.LOST, str(error))
    except (Unsupported, StoreRefused) as error:
        fail(Exit.SETTINGS, str(error))
    except StoreUnavailable as error:
        fail(Exit.UNAVAILABLE, f"the store does not answer: {error}")
    except IdsUnavailable as error:
        fail(Exit.UNAVAILABLE, str(error))
    except CoordinationError as error:
        fail(Exit.REFUSED, str(error))


def _await_answer(client: Client, store: str) -> None:
    """End the command unless the store answers within two seconds: it may just be starting."""
    from strongroom.coordination import StoreUnavailable

    clock = client.context.clock
    until_s = clock.monotonic_s() + _FIRST_ANSWER_S
    while True:
        try:
            client.store.get(_PROBED_KEY, _FIRST_ANSWER_S)
            return
        except StoreUnavailable as error:
            if clock.monotonic_s() >= until_s:
                fail(Exit.UNAVAILABLE, _nobody_answers(client, store, str(error)))
        time.sleep(_FIRST_RETRY_S)


def _nobody_answers(client: Client, store: str, why: str) -> str:
    from strongroom.coordination.options.url_options import shown_url

    endpoint = getattr(client.store, "endpoint", "")  # only a Blob service has one
    start = "start one with 'strongroom serve', or " if endpoint else ""
    return (
        f"no store answers at {endpoint or shown_url(store)} ({why}): {start}name another one with"
        " --store URL or STRONGROOM_STORE"
    )


def point_to_console(client: Client, as_json: bool = False) -> None:
    """Print where to see the records in a browser: on a terminal, if the server has a console."""
    console_url = getattr(client.store, "console_url", "")
    if console_url and not as_json and sys.stderr.isatty():
        link = plain(f"{console_url.rstrip('/')}/coordination"[:_LINK_CHARS_MAX])
        print(f"strongroom: see it at {link}", file=sys.stderr)


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
