"""`docs/engine-calls.md`: the calls of the engine that each operation waits for.

Lives here: the count, and the page that is made of it. Must not live here: the requests
(every_operation.py).

    python -m tests.conformance.engine_calls     writes the page anew

The server keeps its data in memory, so that the engine has no cache. What the services may forget
is forgotten before each request.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Self

import msgspec

from strongroom.account_switches import Switches
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, Account, development_account
from strongroom.config import AccountSources, OAuth, Settings
from strongroom.database import DatabaseSettings
from strongroom.engines.postgres.sessions.session import DatabaseSession
from strongroom.engines.postgres.sql.schema import Statement
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.servers.requests import pipeline
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.auth.tokens import claims, unsigned
from tests.conformance import every_operation as walks
from tests.conformance.answer import Answer
from tests.conformance.client import Client, Credential
from tests.conformance.every_operation import DEPTH, REFUSED, Given, Send
from tests.conformance.sas import account_sas
from tests.conformance.sources import HOST, Source, Sources
from tests.conformance.table_client import TableClient
from tests.operations.test_roles import ENDPOINTS, served
from tests.over_postgres import engine_of_servers_in_memory, new_store
from tests.tidy.sources import ROOT

PAGE: Final = ROOT / "docs" / "engine-calls.md"
CALLS: Final = ("read", "follow", "read_range", "scan", "now", "update")
_IDLE_TURNS: Final = 50
REFUSAL: Final = " (always refused)"
SERVICES: Final = ("blob", "queue", "table", "file")

INTRODUCTION = f"""\
# Calls of the engine

An operation waits for each call of the engine. On an engine that is a server of its own, a call is
a round trip. Over PostgreSQL, each call is one statement, and an update is two: one reads, one
commits. This page has the calls of one successful request of each operation, in their order.
It is made by `python -m tests.conformance.engine_calls`, from a server whose caches are cold. Each
path of a directory or file has {DEPTH} names; its depth changes no number.

The first call reads the container, queue, table or share for the authorization. `update` is a
commit. `read` gets any number of records. `follow` gets the names of a path, each of which leads to
the next. `read_range` and `scan` read what lies in order. `now` reads the store's time. The bytes
of an answer are not counted: these are read while they are sent. Nor is what follows the last
commit, such as the wait for the end of a copy.

"""

PLAIN: Final = development_account()
PROTECTED: Final = Account(
    "protected",
    PLAIN.keys,
    Switches(
        container_retention_days=7, share_retention_days=7, versioning=True, immutability=True
    ),
)
Counts = dict[str, dict[str, list[str]]]
"""The calls of each operation, by the service and the operation's name."""


class EngineWork(msgspec.Struct, frozen=True):
    """What a request asked of the engine.

    Attributes:
        calls: the awaited calls, in their order.
        statements: the names of the statements that a PostgreSQL was sent for them.
    """

    calls: list[str]
    statements: list[str]


_COUNTED: ContextVar[EngineWork | None] = ContextVar("engine-work", default=None)
_CALLED: Final = {"range": "read_range", "commit": "update", "scan_where": "scan"}
"""The calls of statements that have another name."""
Works = dict[str, dict[str, EngineWork]]
"""The work of each operation, by the service and the operation's name."""


class _Counter:
    """The work of each request, as it is answered.

    Arguments:
        engine: the class whose calls are counted.
    """

    def __init__(self, engine: type[Any]) -> None:
        self._engine = engine
        self._running = 0
        self.last = "", "", EngineWork([], [])

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count until the block ends."""
        answer = pipeline._answer
        run = DatabaseSession.run
        before = {name: getattr(self._engine, name) for name in CALLS}
        try:
            for name, call in before.items():
                setattr(self._engine, name, self._counted(name, call))
            DatabaseSession.run = _counted_statement(run)  # type: ignore[method-assign]
            pipeline._answer = self._answering(answer)
            yield
        finally:
            pipeline._answer = answer
            DatabaseSession.run = run  # type: ignore[method-assign]
            for name, call in before.items():
                setattr(self._engine, name, call)

    def _answering(self, answer: Callable[..., Awaitable[Any]]) -> Any:
        async def counted(context: Any, parsed: Any, request_id: str) -> Any:
            context.services.disposable.clear()
            await self._idle()
            work = EngineWork([], [])
            _COUNTED.set(work)
            try:
                return await answer(context, parsed, request_id)
            finally:
                operation = parsed.operation
                ended = EngineWork(list(work.calls), list(work.statements))
                self.last = operation.id, operation.name, ended

        return counted

    def _counted(self, name: str, call: Callable[..., Any]) -> Any:
        async def counted(*given: Any, **more: Any) -> Any:
            work = _COUNTED.get()
            if work is not None:
                work.calls.append(name)
            self._running += 1
            try:
                return await call(*given, **more)
            finally:
                self._running -= 1

        return counted

    async def _idle(self) -> None:
        """Return when no job is under way. Its commit could be sent in the context of a request,
        and the request's in that of the job."""
        idle = 0
        while idle < _IDLE_TURNS:
            idle = 0 if self._running else idle + 1
            await asyncio.sleep(0.001 if self._running else 0)


def _counted_statement(run: Callable[..., Any]) -> Any:
    """The work of a session has the context of the call for which it began."""

    def counted(self: DatabaseSession, statement: Statement, *values: bytes | None) -> Any:
        work = _COUNTED.get()
        if work is not None:
            work.statements.append(statement.name)
        return run(self, statement, *values)

    return counted


@functools.cache
def counts() -> Counts:
    """Send the requests, and return the calls of each operation."""
    works = _works(engine_of_servers_in_memory(), None)
    return {
        service: {name: work.calls for name, work in found.items()}
        for service, found in works.items()
    }


@functools.cache
def works_over_postgres() -> Works:
    """Send the requests to a server over a PostgreSQL."""
    return _works(PostgresEngine, new_store())


def _works(engine: type[Any], store: DatabaseSettings | None) -> Works:
    found: Works = {service: {} for service in SERVICES}
    counter = _Counter(engine)
    with counter.counting(), _Server(store) as server, Sources() as sources:
        held = sources.add("/held", Source(b"bytes", held=True))
        bearer = {"Authorization": f"Bearer {unsigned({'alg': 'none'}, claims(oid='user'), 'x')}"}

        def sender(service: str, account: str = PLAIN.name) -> Send:
            return _sender(server.client(service, account), counter, found[service])

        def given(service: str) -> Given:
            client = server.client(service, PLAIN.name)
            sas = account_sas(client.credential, ss="bf", sp="rwdlacu")
            return Given(client.url, held, bearer, sas)

        walks.blobs(sender("blob"), given("blob"))
        walks.protected_blobs(sender("blob", PROTECTED.name))
        walks.queues(sender("queue"), bearer)
        walks.tables(sender("table"))
        walks.files(sender("file"), given("file"))
        walks.protected_files(sender("file", PROTECTED.name))
    return found


class _Server:
    """A server with two accounts, of which one keeps everything that is deleted.

    Arguments:
        store: None = in memory.
    """

    def __init__(self, store: DatabaseSettings | None) -> None:
        self._settings = Settings(
            data=None,
            store=store,
            blob_port=free_port(),
            queue_port=free_port(),
            table_port=free_port(),
            file_port=free_port(),
            accounts=AccountSources((PLAIN, PROTECTED)),
            oauth=OAuth(),
            copy_source_hosts=(HOST,),
        )
        self._server = InProcessServer(self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def client(self, service: str, account: str) -> Client:
        """A client of a service."""
        port: int = getattr(self._settings, f"{service}_port")
        make = TableClient if service == "table" else Client
        return make(port, Credential(account, DEVELOPMENT_ACCOUNT_KEY))


def _sender(client: Client, counter: _Counter, found: dict[str, EngineWork]) -> Send:
    secondary = client.another(client.prefix + "-secondary")

    def send(
        id: str | None, method: str, target: str, headers: Any = (), body: bytes = b""
    ) -> Answer:
        fields = {name: value.replace("{url}", client.url) for name, value in dict(headers).items()}
        body = body.replace(b"{account}", client.prefix.encode())
        auth = None if "Authorization" in fields else ""
        # Statistics are read at the secondary endpoint.
        sender = secondary if "comp=stats" in target and "restype=service" in target else client
        answer = sender.send(method, target, fields, body, auth=auth)
        is_refused = headers is REFUSED
        assert (answer.status >= 400) == is_refused, (id, target, answer.status, answer.body)
        if id is not None:
            last, name, work = counter.last
            assert last == id, f"{last} was served, not {id}"
            found[name + REFUSAL if is_refused else name] = work
        return answer

    return send


def operations() -> dict[str, list[str]]:
    """Return the names of all served operations, by the service."""
    return {
        service: [one.name for one in served(endpoint) if one.is_served]
        for service, endpoint in zip(SERVICES, ENDPOINTS, strict=True)
    }


def is_one_statement_a_call(work: EngineWork) -> bool:
    """Whether each call was one statement at most, and an update one that reads and one that
    commits. It reads nothing if it decides without records, and commits nothing if nothing changes.
    Reads of one turn of the loop share a statement, also with those of background work."""
    calls = Counter(work.calls)
    sent = Counter(_CALLED.get(name, name) for name in work.statements)
    return (
        all(sent[name] == calls[name] for name in ("follow", "read_range", "scan"))
        and sent["read"] <= calls["read"] + calls["update"]
        and sent["update"] <= calls["update"]
    )


def before_commit(calls: list[str]) -> int:
    """Return how many calls are awaited before the first commit, or at all without one."""
    return calls.index("update") if "update" in calls else len(calls)


def page() -> str:
    """Return the whole page."""
    return INTRODUCTION + "\n".join(
        itertools.chain.from_iterable(_section(*one) for one in counts().items())
    )


def _section(service: str, found: dict[str, list[str]]) -> Iterator[str]:
    yield f"## {service.title()}s\n"
    yield "| operation | before its commit, or in all | calls |"
    yield "| --- | --- | --- |"
    for name in sorted(found):
        yield f"| {name} | {before_commit(found[name])} | {shown(found[name])} |"
    yield ""


def shown(calls: list[str]) -> str:
    """Return the calls up to the last commit, as the page has them."""
    last = len(calls) - calls[::-1].index("update") if "update" in calls else len(calls)
    calls = calls[:last] or ["none"]
    grouped = [(name, len(list(same))) for name, same in itertools.groupby(calls)]
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in grouped)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
