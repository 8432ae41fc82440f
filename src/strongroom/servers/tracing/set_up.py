"""Where spans are sent: the SDK, with an exporter for OTLP over HTTP.

Lives here: the one use of the SDK. Its configuration is the standard variables of the environment,
which the SDK reads itself (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and
their like). Source: OpenTelemetry, "Environment Variable Specification".
"""

from __future__ import annotations

import asyncio
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Tracer

from strongroom import __version__
from strongroom.servers.access_log.places import Places
from strongroom.servers.tracing.commits import CommitSpans
from strongroom.servers.tracing.spans import RequestSpans

_NAME: Final = "strongroom"
_UNKNOWN_SERVICE: Final = "unknown_service"
_STOP_TIMEOUT_S: Final = 5.0


class Tracing:
    """The spans of one server. `exporter` sends them; None = as the environment says."""

    def __init__(self, places: Places, exporter: SpanExporter | None = None) -> None:
        self._provider = TracerProvider(resource=_resource())
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        tracer: Tracer = self._provider.get_tracer(_NAME, __version__)
        self.requests = RequestSpans(tracer, places)
        self.commits = CommitSpans(tracer)

    async def close(self) -> None:
        """Send the spans that wait, within a bounded time."""
        ending = asyncio.to_thread(self._provider.shutdown)
        try:
            await asyncio.wait_for(ending, _STOP_TIMEOUT_S)
        except TimeoutError:
            pass  # the collector does not answer; its exporter has logged that


def _resource() -> Resource:
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith(_UNKNOWN_SERVICE):
        resource = resource.merge(Resource({SERVICE_NAME: _NAME, SERVICE_VERSION: __version__}))
    return resource
