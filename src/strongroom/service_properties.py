"""The properties of a service as values: logging, metrics, CORS, retention, and sections of single
services.

Lives here: structs that the wire, the rules and the services share. Must not live here: XML
(wire/core/service_properties_xml.py), matching of CORS rules (semantics/core/cors.py). Source: "Set
Blob Service Properties".
"""

from __future__ import annotations

from typing import Final

import msgspec


class RetentionPolicy(msgspec.Struct, frozen=True):
    """How long deleted or logged data is kept; `days` (1 to 365) is set exactly if `enabled`."""

    enabled: bool = False
    days: int | None = None
    allow_permanent_delete: bool | None = None


class Logging(msgspec.Struct, frozen=True):
    """Which requests are logged."""

    version: str = "1.0"
    delete: bool = False
    read: bool = False
    write: bool = False
    retention: RetentionPolicy = RetentionPolicy()


class Metrics(msgspec.Struct, frozen=True):
    """Hour or minute metrics; `include_apis` is set exactly if `enabled`."""

    version: str = "1.0"
    enabled: bool = False
    include_apis: bool | None = None
    retention: RetentionPolicy = RetentionPolicy()


class CorsRule(msgspec.Struct, frozen=True):
    """A rule for browsers of some origins; `max_age_s` is how long a browser may cache it."""

    allowed_origins: tuple[str, ...]
    allowed_methods: tuple[str, ...]
    allowed_headers: tuple[str, ...] = ()
    exposed_headers: tuple[str, ...] = ()
    max_age_s: int = 0


class StaticWebsite(msgspec.Struct, frozen=True):
    """Serving of the `$web` container as a website."""

    enabled: bool = False
    index_document: str | None = None
    error_document_404_path: str | None = None
    default_index_document_path: str | None = None


class ServiceProperties(msgspec.Struct, frozen=True):
    """All properties. None means that the section was not given; a request then leaves it
    unchanged."""

    logging: Logging | None = None
    hour_metrics: Metrics | None = None
    minute_metrics: Metrics | None = None
    cors: tuple[CorsRule, ...] | None = None
    default_service_version: str | None = None
    delete_retention: RetentionPolicy | None = None
    static_website: StaticWebsite | None = None
    smb_multichannel: bool | None = None

    def updated(self, request: ServiceProperties) -> ServiceProperties:
        """Return these properties, with every section that `request` gives replaced."""
        given = {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(request, name)) is not None
        }
        return msgspec.structs.replace(self, **given)


_SHARED: Final = ServiceProperties(
    logging=Logging(), hour_metrics=Metrics(), minute_metrics=Metrics(), cors=()
)
DEFAULTS: Final = {
    "blob": msgspec.structs.replace(
        _SHARED, delete_retention=RetentionPolicy(), static_website=StaticWebsite()
    ),
    "queue": _SHARED,
    "table": _SHARED,
    "file": ServiceProperties(
        hour_metrics=Metrics(), minute_metrics=Metrics(), cors=(), smb_multichannel=False
    ),
}
"""The properties of a service that has none set, by the service's name."""
