"""What the examples share: a server to talk to, and a step that prints what it met.

Run an example as it is and it starts its own server, in memory and with a clock that can be moved;
set AZURE_STORAGE_CONNECTION_STRING to run it against any other endpoint, where it waits for real.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Endpoint:
    """Where an example runs: a connection string, and a way to let time pass."""

    connection_string: str
    let_pass: Callable[[float], object]


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """The endpoint of the environment, or a server of our own."""
    given = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    if given:
        yield Endpoint(given, time.sleep)
        return
    from strongroom.testing import InProcessServer

    with InProcessServer.start(test_clock=True) as server:
        yield Endpoint(server.connection_string, server.clock.advance)


class Unexpected(Exception):
    """A step met another status than the one it was written for."""


def step(what: str, expected: int, call: Callable[[], Any]) -> Any:
    """Do one step, print the status it met, and insist on the expected one.

    Returns what `call` returned, None when it was refused as expected. An error that is no answer
    of the service is not caught.
    """
    # Here, so that the many processes of other examples do not load the SDK.
    from azure.core.exceptions import HttpResponseError

    try:
        result, status, code = call(), expected, ""
    except HttpResponseError as error:
        code = getattr(error, "error_code", None) or ""
        result, status, code = None, error.status_code, str(getattr(code, "value", code))
        if status != expected:
            raise Unexpected(f"{what}: {status} {code}, not {expected}") from error
    else:
        if expected >= 400:
            raise Unexpected(f"{what}: was accepted, not refused with {expected}")
    print(f"  {what:<66} {status} {code}".rstrip())
    return result
