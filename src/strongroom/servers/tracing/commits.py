"""A span for each commit of the engine, with links to the requests that it makes durable.

Lives here: the span, and which request waits for which update. Must not live here: commits
(engines/). A commit serves several requests, so it is no child of one of them.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Iterable
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, Tracer

from strongroom.servers.tracing.spans import current_context


class CommitSpans:
    """Makes the spans of commits (see CommitObserver of the embedded engine)."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._requests: weakref.WeakKeyDictionary[Awaitable[Any], SpanContext] = (
            weakref.WeakKeyDictionary()
        )
        self._span: Span | None = None

    def updating(self, result: Awaitable[Any]) -> None:
        """Note that the current request waits for the result of an update."""
        request = current_context()
        if request is not None:
            self._requests[result] = request

    def begins(self, results: Iterable[asyncio.Future[Any]]) -> None:
        updates = list(results)
        contexts = (self._requests.get(result) for result in updates)
        requests = {request.span_id: request for request in contexts if request is not None}
        links = [Link(request) for request in requests.values()]
        self._span = self._tracer.start_span(
            "commit",
            Context(),  # no parent: several requests wait for it
            SpanKind.INTERNAL,
            attributes={"strongroom.commit.updates": len(updates)},
            links=links,
        )

    def ended(self, error: BaseException | None) -> None:
        span, self._span = self._span, None
        if span is None:
            return
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
        span.end()
