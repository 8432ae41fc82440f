"""The answers of the read API about requests: a page of the tail, and one request in full.

Lives here: the long poll, and how a kept request becomes a document. Must not live here: the way to
the viewer (servers/console/), what is masked (masking.py). A poll looks at new requests a few times
a second, so a request that is served pays nothing for those who look.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import msgspec

from strongroom.auth.accounts import Accounts
from strongroom.servers.console.api.documents import (
    HeaderText,
    RequestInFull,
    RequestRow,
    RequestsPage,
)
from strongroom.servers.console.requests.filters import Matches
from strongroom.servers.console.requests.heads import SentHead, read_answer, read_request
from strongroom.servers.console.requests.kept import KeptRequests, ShortRecord
from strongroom.servers.console.requests.masking import Masking, masked_text
from strongroom.servers.console.requests.scope import SERVICES, Endpoints, RequestScope
from strongroom.slices import SliceTurns
from strongroom.values import iso7

WAIT_S_MAX: Final = 30.0
LIMIT_MAX: Final = 1000
_LOOK_S: Final = 0.2
_RECORDS_A_STEP: Final = 100
_KEYS: Final = ("key1", "key2")


class TailQuestion(msgspec.Struct, frozen=True):
    """What a viewer asks for.

    Attributes:
        after: only requests with higher numbers; 0 = the newest that are kept.
        wait_s: how long to wait for one, at most WAIT_S_MAX.
        limit: how many, at most LIMIT_MAX. With `after`, the oldest of them; without, the newest.
    """

    matches: Matches
    after: int = 0
    wait_s: float = 0.0
    limit: int = 500


class RequestAnswers:
    """Answers about the requests that are kept.

    Arguments:
        turns: the slices in which many requests are looked at.
        accounts: have the keys by which a signature is explained.
        endpoints: where the services listen.
        is_stopping: whether the server ends, so that nobody may wait.
    """

    def __init__(
        self,
        kept: KeptRequests,
        turns: SliceTurns,
        accounts: Accounts,
        endpoints: Callable[[], Endpoints],
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._kept = kept
        self._turns = turns
        self._accounts = accounts
        self._endpoints = endpoints
        self._is_stopping = is_stopping

    async def page(
        self,
        scope: RequestScope,
        question: TailQuestion,
        ended: asyncio.Event,
    ) -> RequestsPage:
        """Return the requests that a viewer asks for and may see; wait for one if there is none.

        Arguments:
            ended: is set when the answer may wait no longer, since its viewer has disconnected or
                another poll takes its place.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + min(question.wait_s, WAIT_S_MAX)
        self._kept.catch_up()
        # Numbers begin anew with the process: a viewer from before it asks from the beginning.
        after = question.after if question.after <= self._kept.newest else 0
        while True:
            newest, rows = await self._found(scope, question, after)
            is_over = loop.time() >= ends or self._is_stopping() or ended.is_set()
            if rows or is_over:
                return RequestsPage(
                    newest=newest, oldest_kept=self._kept.oldest, requests=tuple(rows)
                )
            after = newest
            await _pause(ended, min(_LOOK_S, max(0.0, ends - loop.time())))

    async def _found(
        self, scope: RequestScope, question: TailQuestion, after: int
    ) -> tuple[int, list[RequestRow]]:
        """Return the number up to which requests were looked at, and those that were found."""
        self._kept.catch_up()
        kept, limit = self._kept, max(1, min(question.limit, LIMIT_MAX))
        newest, rows = kept.newest, list[RequestRow]()
        is_first = after == 0
        candidates = kept.before(newest + 1) if is_first else kept.after(after)
        for seen, (number, record) in enumerate(candidates, 1):
            if scope.sees(record) and question.matches(record):
                rows.append(_row(number, record))
                if len(rows) == limit:
                    newest = newest if is_first else number
                    break
            if seen % _RECORDS_A_STEP == 0:
                await self._turns.pause()
        return newest, rows[::-1] if is_first else rows

    def in_full(self, scope: RequestScope, number: int) -> RequestInFull | None:
        """Return one request in full; None if it is not kept, or not for this viewer."""
        short, full = self._kept.short(number), self._kept.full(number)
        record = short if full is None else full.short
        if record is None or not scope.sees(record):
            return None
        if full is None:
            return _only_short(number, record)
        head, answer = read_request(full.request_head), read_answer(full.answer_head)
        masking = Masking(head, answer)
        # Loaded when somebody first looks: no server needs these rules and texts to start.
        from strongroom.servers.console.requests.explaining import explained

        owner = self._accounts.get(record.account) if scope.owns(record.account) else None
        reason, again = explained(full, head, masking, owner, self._endpoints())
        return RequestInFull(
            request=_row(number, record),
            is_whole=True,
            is_cut=bool(full.request_head) and head.is_cut,
            request_headers=_headers(head, masking),
            answer_headers=_headers(answer, masking),
            why=reason,
            replay=again,
        )


async def _pause(ended: asyncio.Event, seconds: float) -> None:
    """Wait, at most until `ended` is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ended.wait()


def _headers(head: SentHead, masking: Masking) -> tuple[HeaderText, ...]:
    return tuple(
        HeaderText(name=name, value=masking.header(name, value)) for name, value in head.fields
    )


def _row(number: int, record: ShortRecord) -> RequestRow:
    service = SERVICES.get(record.service)
    return RequestRow(
        number=number,
        time=iso7(record.began),
        who=f"{record.who} {record.account}" if record.who in _KEYS else record.who,
        account=record.account,
        operation=record.operation,
        method=record.method,
        service="" if service is None else service.value,
        path=masked_text(record.path),
        status=record.status,
        code=record.code,
        duration_ms=round(record.seconds * 1000, 3),
        through_console=record.through_console,
    )


def _only_short(number: int, record: ShortRecord) -> RequestInFull:
    return RequestInFull(
        request=_row(number, record),
        is_whole=False,
        is_cut=False,
        request_headers=(),
        answer_headers=(),
        why=None,
        replay=None,
    )
