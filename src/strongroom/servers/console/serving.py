"""The console of one server: its parts, put together.

Settings are read by config.py and sources.py, and app.py opens the port.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

import msgspec

from strongroom.auth.accounts import Account
from strongroom.auth.request import Service
from strongroom.servers.console.access.answers import AccessAnswers, IdentityFiles
from strongroom.servers.console.access.sas_text import Addresses
from strongroom.servers.console.api.endpoints import Answer, ApiRequest, ReadApi, answer_who
from strongroom.servers.console.api.figures import Figures, ServerState
from strongroom.servers.console.api.leases import LeaseTimes
from strongroom.servers.console.api.parts import RequestsPart
from strongroom.servers.console.api.table import NUMBER
from strongroom.servers.console.listener import NAME, console_server
from strongroom.servers.console.log_tail import LogTail
from strongroom.servers.console.open_files import open_file
from strongroom.servers.console.origin import ConsoleOrigin
from strongroom.servers.console.pages import BuiltPage
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.sampler import Gauges, Sampler
from strongroom.servers.console.session import SessionFacts
from strongroom.servers.console.viewers import Viewers
from strongroom.servers.free_memory import resident_bytes
from strongroom.servers.service_listeners import ENDPOINTS, Contexts, Shared
from strongroom.services.core.runner import Services
from strongroom.values import JobFacts, StoreFacts

if TYPE_CHECKING:
    from strongroom.servers.console.oidc import SignIn

_log = logging.getLogger(__name__)

__all__ = ["NAME", "Console", "ConsoleOptions", "ServerFacts"]


class ConsoleOptions(msgspec.Struct, frozen=True):
    """How a console is served.

    Attributes:
        url: the one origin behind a proxy; None = that of each request.
        idle_minutes: without a key or a click for so long, the page signs out.
        operator: the account whose key is an operator's; None = that of the only account.
        is_own_name: whether a host name is one of the server.
        sign_in: where a person signs in for a token; None = nowhere.
        folder: of the built page; None = the package's own.
    """

    url: str | None
    idle_minutes: int
    operator: str | None
    is_own_name: Callable[[str], bool]
    sign_in: SignIn | None = None
    folder: Traversable | None = None


class ServerFacts(msgspec.Struct, frozen=True):
    """The server that a console shows.

    Attributes:
        host, scheme: where clients on this machine reach the services.
        ports: of the listeners, by their names; filled while the server starts.
        is_local: whether every listener is on loopback.
        data: the data directory; None = in memory.
        store: returns the facts of the disk; None = in memory.
        files: the files of accounts and roles.
    """

    host: str
    scheme: str
    ports: Mapping[str, int]
    is_local: bool
    has_test_clock: bool
    data: str | None
    accounts: Callable[[], tuple[Account, ...]]
    store: Callable[[], StoreFacts] | None
    jobs: Callable[[], JobFacts]
    files: IdentityFiles


class Console:
    """One console. Its port is opened by whoever has `server`.

    Attributes:
        api: the read API, to which other modules add their parts (`mounts`).

    Arguments:
        contexts: of the services' own ports.
        requests: the tail of requests; None = there is none.
    """

    def __init__(
        self,
        options: ConsoleOptions,
        server: ServerFacts,
        contexts: Contexts,
        shared: Shared,
        requests: RequestsPart | None = None,
    ) -> None:
        context = contexts[Service.BLOB]
        self._log = LogTail()
        self._sampler = Sampler(_gauges(server, shared, context.clock.wall_ticks))
        session = SessionFacts(
            ports=server.ports,
            host=server.host,
            scheme=server.scheme,
            accounts=server.accounts,
            is_local=server.is_local,
            idle_minutes=options.idle_minutes,
            has_test_clock=server.has_test_clock,
            console_url=options.url,
            issuer=None if options.sign_in is None else options.sign_in.issuer,
        )
        figures = Figures(
            self._sampler,
            session.service_ports,
            server.accounts,
            ServerState(
                server.data, shared.connections.places, shared.own.is_ready, self._log.newest
            ),
            None if requests is None else requests.after,
        )
        origin = ConsoleOrigin(options.is_own_name, options.url)
        viewers = Viewers(context, server.accounts, options.operator)
        self.api = ReadApi(
            viewers,
            {
                **_answers(session, figures, LeaseTimes(context)),
                **_requests_answers(requests),
                **_access_answers(server, contexts, viewers),
                **_sign_in_answers(options.sign_in, origin),
                **_file_answers(contexts[Service.FILE].services),
            },
            asyncio.get_running_loop().time,
        )
        self._operator, self._accounts = options.operator, server.accounts
        self.server = console_server(origin, BuiltPage(options.folder), self.api, contexts, shared)

    async def run(self) -> None:
        self._log.open()
        self._warn_of_unknown_operator()
        try:
            await self._sampler.run()
        finally:
            self._log.close()

    def _warn_of_unknown_operator(self) -> None:
        # No error, since the account may be added while the server runs.
        if self._operator in (None, *(one.name for one in self._accounts())):
            return
        _log.warning(
            "--console-operator: there is no account %r, so no key sees the whole server. It does "
            "as soon as the account is served: strongroom account add NAME",
            self._operator,
        )


def _gauges(server: ServerFacts, shared: Shared, wall_ticks: Callable[[], int]) -> Gauges:
    names = {
        service.value: [operation.name for operation in endpoint.routes.operations]
        for service, endpoint in ENDPOINTS.items()
    }
    return Gauges(
        shared.telemetry.counts, server.store, server.jobs, resident_bytes, wall_ticks, names
    )


def _answers(session: SessionFacts, figures: Figures, leases: LeaseTimes) -> dict[str, Answer]:
    async def answer_session(asked: ApiRequest) -> msgspec.Struct:
        return session.document()

    async def answer_overview(asked: ApiRequest) -> msgspec.Struct:
        return figures.overview(asked.known)

    async def answer_history(asked: ApiRequest) -> msgspec.Struct:
        return figures.hour(asked.known)

    return {
        "session": answer_session,
        "who": answer_who,
        "overview": answer_overview,
        "history": answer_history,
        "leases": leases.answer,
    }


def _requests_answers(requests: RequestsPart | None) -> dict[str, Answer]:
    if requests is None:
        return {}

    async def answer_page(asked: ApiRequest) -> msgspec.Struct:
        return await requests.page(asked.known, asked.query, asked.request.on_disconnect)

    async def answer_one(asked: ApiRequest) -> msgspec.Struct:
        return await requests.in_full(asked.known, asked.number)

    return {"requests": answer_page, f"requests/{NUMBER}": answer_one}


def _access_answers(server: ServerFacts, contexts: Contexts, viewers: Viewers) -> dict[str, Answer]:
    context = contexts[Service.BLOB]
    suffixes = {service: one.suffixes for service, one in contexts.items()}
    answers = AccessAnswers(
        files=server.files,
        accounts=server.accounts,
        is_operator=viewers.is_operator_account,
        identities=context.identities,
        addresses=lambda: Addresses(server.ports, suffixes),
        wall_ticks=context.clock.wall_ticks,
    )
    return {"access": answers.access, "access/explain": answers.explain}


def _sign_in_answers(sign_in: SignIn | None, origin: ConsoleOrigin) -> dict[str, Answer]:
    if sign_in is None:
        return {}

    async def answer_tokens(asked: ApiRequest) -> msgspec.Struct:
        if not asked.request.tls:
            text = "A token is sent over TLS only: open the console by https."
            raise ApiRefusal(403, "HttpsNeeded", text)
        return await sign_in.exchange(asked.body, origin.of(asked.request))

    return {"tokens": answer_tokens}


def _file_answers(services: Services) -> dict[str, Answer]:
    async def answer_opens(asked: ApiRequest) -> msgspec.Struct:
        return await open_file(services, asked.known, asked.query)

    return {"files/opens": answer_opens}
