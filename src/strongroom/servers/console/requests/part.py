"""The tail of requests as a part of the read API (api/parts.py): parameters, refusals, viewers.

Must not live here: the answers themselves (answers.py), the grammar of filters (filters.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from strongroom.auth.accounts import Accounts
from strongroom.auth.request import Service
from strongroom.servers import one_port
from strongroom.servers.console.api.documents import RequestInFull, RequestsPage
from strongroom.servers.console.api.figures import Tail
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.requests.answers import (
    LIMIT_MAX,
    WAIT_S_MAX,
    RequestAnswers,
    TailQuestion,
)
from strongroom.servers.console.requests.filters import FilterProblem, parse_filter
from strongroom.servers.console.requests.kept import KeptRequests
from strongroom.servers.console.requests.observer import RequestTail
from strongroom.servers.console.requests.polls import WaitingPolls
from strongroom.servers.console.requests.scope import Endpoints, RequestScope
from strongroom.servers.console.serving import ServerFacts
from strongroom.servers.console.viewers import ACCOUNT_KEY, OPERATOR_NEEDED, Viewer
from strongroom.servers.requests.admission import ServiceContext
from strongroom.servers.service_listeners import Shared
from strongroom.slices import SliceTurns

_DIGITS_MAX: Final = 15
_LIMIT: Final = 500


class KeptRequestsPart:
    """Answers about the requests that are kept (see RequestsPart).

    Attributes:
        polls: those that wait.
    """

    def __init__(
        self,
        kept: KeptRequests,
        turns: SliceTurns,
        accounts: Accounts,
        endpoints: Callable[[], Endpoints],
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.polls = WaitingPolls()
        self._kept = kept
        self._answers = RequestAnswers(kept, turns, accounts, endpoints, is_stopping)

    @property
    def after(self) -> Tail:
        return self._kept.after

    async def page(
        self,
        viewer: Viewer,
        query: Mapping[str, str],
        on_disconnect: Callable[[Callable[[], None]], None],
    ) -> RequestsPage:
        question, scope = _question(query), scope_of(viewer)
        if not question.wait_s:
            return await self._answers.page(scope, question, asyncio.Event())
        with self.polls.place(f"{viewer.kind} {viewer.name}") as ended:
            on_disconnect(ended.set)
            return await self._answers.page(scope, question, ended)

    async def in_full(self, viewer: Viewer, number: int) -> RequestInFull:
        found = self._answers.in_full(scope_of(viewer), number)
        if found is None:
            raise ApiRefusal(
                404,
                "RequestNotKept",
                f"Request {number} is no longer kept, or is not yours to see.",
                OPERATOR_NEEDED if viewer.kind == "key" else ACCOUNT_KEY,
            )
        return found


def kept_requests(
    shared: Shared, context: ServiceContext, server: ServerFacts
) -> tuple[Shared, KeptRequestsPart]:
    """Return what the listeners share, with a tail of requests, and the part that answers about it.

    Arguments:
        context: of any service.
    """
    kept = KeptRequests()
    tail = RequestTail(kept, context.clock.wall_ticks, asyncio.get_running_loop().call_later)
    part = KeptRequestsPart(
        kept,
        context.services.turns,
        context.accounts,
        lambda: endpoints_of(server.ports, server.scheme, server.host),
        lambda: not shared.own.is_ready(),
    )
    return replace(shared, tail=tail), part


def endpoints_of(ports: Mapping[str, int], scheme: str, host: str) -> Endpoints:
    """Return the URL of each service: on its own port, else on that of all services."""
    urls = dict[Service, str]()
    for service in Service:
        if service.value in ports:
            urls[service] = f"{scheme}://{host}:{ports[service.value]}"
        elif one_port.NAME in ports:
            urls[service] = f"{scheme}://{host}:{ports[one_port.NAME]}/{service.value}"
    return urls


def scope_of(viewer: Viewer) -> RequestScope:
    """Return what a viewer may see. A token proves no account, whichever it names."""
    return RequestScope(
        account=viewer.account if viewer.kind == "key" else "",
        is_operator=viewer.is_operator,
        assignments=viewer.assignments,
    )


def _question(query: Mapping[str, str]) -> TailQuestion:
    try:
        matches = parse_filter(query.get("filter", ""))
    except FilterProblem as problem:
        raise ApiRefusal(400, "InvalidFilter", str(problem)) from None
    wait_s = _whole_number(query, "wait_s", 0)
    limit = _whole_number(query, "limit", _LIMIT)
    if wait_s > WAIT_S_MAX or not 1 <= limit <= LIMIT_MAX:
        text = f"wait_s is at most {WAIT_S_MAX:.0f}, and limit lies between 1 and {LIMIT_MAX}."
        raise ApiRefusal(400, "OutOfRange", text)
    return TailQuestion(matches, _whole_number(query, "after", 0), float(wait_s), limit)


def _whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise ApiRefusal(400, "InvalidNumber", f"{name} must be a whole number, as {name}=20.")
    return int(text)
