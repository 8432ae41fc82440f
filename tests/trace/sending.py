"""One request to a fresh server of this process, while a recorder observes.

Lives here: the server, the preparation, and when recording begins and ends.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import InProcessServer
from tests.conformance.answer import Answer
from tests.conformance.client import Client, Credential
from tests.conformance.table_client import TableClient
from tests.trace.plans import Plan, Sent
from tests.trace.recording import Recorder

SERVICES = ("blob", "queue", "table", "file")
# The server counts a request after it has answered, which belongs to the path as well.
_AFTER_S = 0.02


class NotPrepared(Exception):
    """A request that prepares another one was refused."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the data lies: a data directory, or None for memory."""

    data: Path | None

    @classmethod
    @contextmanager
    def of(cls, data: Path | None, on_disk: bool) -> Iterator[Place]:
        """The place that was named; else a new directory if there has to be one."""
        if data is not None or not on_disk:
            yield cls(data)
            return
        with tempfile.TemporaryDirectory() as folder:
            yield cls(Path(folder) / "data")


def answer_to(plan: Plan, service: str, place: Place, recorder: Recorder) -> Answer:
    """Prepare and send a request. The recorder then has what ran for it.

    Raises: NotPrepared; strongroom.app.DataUnusable.
    """
    with ExitStack() as stack:
        stack.enter_context(recorder.installed())
        server = stack.enter_context(InProcessServer.start(data=place.data, test_clock=False))
        client = _client(server, service)
        stack.callback(client.close)
        for request in plan.before:
            _prepare(client, request)
        time.sleep(_AFTER_S)
        recorder.begin()
        answer = _send(client, plan.request)
        time.sleep(_AFTER_S)
        recorder.is_on = False
        return answer


def _client(server: InProcessServer, service: str) -> Client:
    urls = (server.url, server.queue_url, server.table_url, server.file_url)
    port = int(dict(zip(SERVICES, urls, strict=True))[service].rpartition(":")[2])
    make = TableClient if service == "table" else Client
    return make(port, Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY))


def _prepare(client: Client, request: Sent) -> None:
    if request.overwrites and client.head(request.target).status == 200:
        return
    answer = _send(client, request)
    # 409: a directory of data has it already.
    if answer.status >= 400 and answer.status != 409:
        text = answer.body.decode("utf-8", "replace")
        raise NotPrepared(f"{request.method} {request.target}: {answer.status} {text}")


def _send(client: Client, request: Sent) -> Answer:
    return client.send(request.method, request.target, request.headers, request.body)
