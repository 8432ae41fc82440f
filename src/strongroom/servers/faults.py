"""Fault injection: the faults that a test server applies to requests as a plan prescribes.

Lives here: which requests a fault hits, and which fault. Must not live here: the endpoint that
takes plans (own_endpoints.py). The choice is repeatable. It depends only on the seed, the rule and
the number of requests that matched the rule before.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
from collections.abc import AsyncIterator
from fnmatch import fnmatchcase
from typing import Annotated, Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob.copy import COPY_BLOB
from strongroom.operations.file.copy import COPY_FILE
from strongroom.servers.requests import pipeline
from strongroom.servers.requests.admission import ServiceContext, read
from strongroom.wire.core.http import Request, Response

RULES_MAX: Final = 100
SCRIPT_MAX: Final = 10_000
_PATTERN_CHARS_MAX: Final = 1024
_PSEUDORANDOM_VALUES: Final = 1 << 64

Pattern = Annotated[str, msgspec.Meta(max_length=_PATTERN_CHARS_MAX)]


class Fault(enum.Enum):
    PASS = "pass"  # noqa: S105 - no password
    """No fault; used in scripts."""
    BUSY = "busy"
    """503 ServerBusy; nothing was done."""
    ERROR = "error"
    """500 InternalError; nothing was done."""
    LOST_REPLY = "lost-reply"
    """The request is done durably, and yet answered 500 InternalError."""
    CUT = "cut"
    """The request is done. The connection ends within the answer, or before one without a body."""
    HOLD_COPY = "hold-copy"
    """Copy Blob starts a copy that stays pending until another plan is ordered."""


class FaultRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of a plan.

    Attributes:
        operation: Microsoft's name of the operation (`Put Blob`), `*` and `?` as in file names.
        resource: the path from the account on, as it was sent, with the same wildcards.
        fault: the fault of the requests that are hit.
        delay_s: how many seconds a hit request waits first.
        probability: the share of matching requests that are hit.
        skip: how many matching requests pass first.
        times: how many requests are hit at most; None = no limit.
        script: the faults of the first, the second, ... matching request (after `skip`), instead of
            `fault` and `probability`. Requests after its end pass.
    """

    operation: Pattern = "*"
    resource: Pattern = "*"
    fault: Fault = Fault.PASS
    delay_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 0.0
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    times: Annotated[int, msgspec.Meta(ge=0)] | None = None
    script: Annotated[tuple[Fault, ...], msgspec.Meta(max_length=SCRIPT_MAX)] = ()


class FaultPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All rules; the first rule that matches a request decides about it."""

    rules: Annotated[tuple[FaultRule, ...], msgspec.Meta(max_length=RULES_MAX)] = ()
    seed: int = 0


class RuleCount(msgspec.Struct):
    """How many requests have matched a rule, and how many of them were hit."""

    matched: int = 0
    hit: int = 0


class FaultInjector:
    """The current plan, and how many requests it has hit."""

    def __init__(self) -> None:
        self.plan = FaultPlan()
        self.counts: list[RuleCount] = []
        self._held: set[str] = set()
        self._changed = asyncio.Event()

    def set_plan(self, plan: FaultPlan) -> None:
        """Replace the plan, and reset the counts."""
        self.plan = plan
        self.counts = [RuleCount() for _ in plan.rules]
        self._held.clear()
        self._changed.set()
        self._changed = asyncio.Event()

    def is_held(self, destination: str) -> bool:
        """Whether a copy to this blob (`account/container/blob`) must stay pending."""
        return destination in self._held

    async def wait_until_released(self, destination: str) -> None:
        while destination in self._held:
            await self._changed.wait()

    async def respond(self, context: ServiceContext, request: Request) -> Response:
        """Answer a request as the pipeline does, unless the plan prescribes a fault for it."""
        rule, fault = self._decide(context, request) if self.plan.rules else (None, Fault.PASS)
        if rule is None:
            return await pipeline.respond(context, request)
        if rule.delay_s:
            await asyncio.sleep(rule.delay_s)
        if fault is Fault.BUSY:
            return pipeline.refuse(context, StorageError(errors.SERVER_BUSY), request)
        if fault is Fault.ERROR:
            return pipeline.refuse(context, StorageError(errors.INTERNAL_ERROR), request)
        if fault is Fault.HOLD_COPY:
            return await self._hold_copy(context, request)
        response = await pipeline.respond(context, request)
        if fault is Fault.LOST_REPLY:
            _give_up(response)
            return pipeline.refuse(context, StorageError(errors.INTERNAL_ERROR), request)
        return _cut(response) if fault is Fault.CUT else response

    async def _hold_copy(self, context: ServiceContext, request: Request) -> Response:
        if _operation_of(context, request) not in (COPY_BLOB.name, COPY_FILE.name):
            return await pipeline.respond(context, request)
        target = read(context, request).addressed.target
        destination = f"{target.account}/{target.container}/{target.blob}"
        is_held = destination in self._held
        self._held.add(destination)
        response = await pipeline.respond(context, request)
        if response.status != 202 and not is_held:
            self._held.discard(destination)  # no copy was started
        return response

    def _decide(self, context: ServiceContext, request: Request) -> tuple[FaultRule | None, Fault]:
        operation = _operation_of(context, request)
        for index, rule in enumerate(self.plan.rules):
            named = fnmatchcase(operation.lower(), rule.operation.lower())
            if named and fnmatchcase(request.resource_path, rule.resource):
                fault = self._draw(index, rule)
                return (None, Fault.PASS) if fault is None else (rule, fault)
        return None, Fault.PASS

    def _draw(self, index: int, rule: FaultRule) -> Fault | None:
        """Return the fault of the next request that matches the rule; None if it passes
        unchanged."""
        count = self.counts[index]
        number = count.matched - rule.skip
        count.matched += 1
        if number < 0 or (rule.times is not None and count.hit >= rule.times):
            return None
        if rule.script:
            if number >= len(rule.script) or rule.script[number] is Fault.PASS:
                return None
            count.hit += 1
            return rule.script[number]
        if _pseudorandom(self.plan.seed, index, number) >= rule.probability:
            return None
        count.hit += 1
        return rule.fault


def _pseudorandom(seed: int, index: int, number: int) -> float:
    """Return the pseudorandom number in [0, 1) for the `number`th match of the rule at `index`."""
    digest = hashlib.blake2b(f"{seed}/{index}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / _PSEUDORANDOM_VALUES


def _operation_of(context: ServiceContext, request: Request) -> str:
    """Return the name of the requested operation; "" if there is none."""
    endpoint = context.endpoint
    try:
        parsed = read(context, request)
        method, resource = endpoint.method(request), parsed.addressed.resource
        return endpoint.routes.match(method, resource, parsed.query, request.headers).name
    except StorageError:
        return ""


def _give_up(response: Response) -> None:
    finished, response.finished = response.finished, None
    if finished is not None:
        finished()


def _cut(response: Response) -> Response:
    """Return the same answer, of which only the first half is sent."""
    body = response.body
    size_bytes = len(body) if isinstance(body, bytes) else response.size_bytes
    if not size_bytes:
        size_bytes, body = 1, b""
        if response.status in (204, 304):
            response.status = 200  # these statuses have no body to cut
    response.body, response.size_bytes = _half(body, size_bytes // 2), size_bytes
    return response


async def _half(body: object, keep_bytes: int) -> AsyncIterator[bytes]:
    # Content that lies in files is left out: only the interruption matters, not the bytes before
    # it.
    if isinstance(body, bytes) and keep_bytes:
        yield body[:keep_bytes]
    raise ConnectionResetError("cut on order")
