"""The endpoints of the read API, one row each.

Lives here: paths, parameters, documents, and what each endpoint needs. Must not live here: answers
(endpoints.py), who a viewer is (viewers.py). An endpoint that is no row here is answered with 404,
and a row needs a signature unless it says ANYONE.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from strongroom.servers.console.api.access import AccessOverview, ExplainedSas
from strongroom.servers.console.api.documents import (
    ExchangedToken,
    LeaseTime,
    Overview,
    RequestInFull,
    RequestsPage,
    SampledHour,
    Session,
    Who,
)
from strongroom.servers.console.api.opens import ShownFileOpens

PREFIX: Final = "/.strongroom/console/v1/"
NUMBER: Final = "{number}"
"""Stands for a number in a path."""


class EndpointNeeds(enum.Enum):
    """Which viewers an endpoint answers."""

    ANYONE = "anyone"
    """No signature is needed, and none is read."""
    SIGN_IN = "sign-in"
    """A key or a token, whatever its rights."""
    REQUESTS = "requests"
    """An account's key, an operator, or a role that permits to read some data."""
    FIGURES = "account key"
    """An account's key, or an operator."""
    OPERATOR = "operator"


class Row(msgspec.Struct, frozen=True):
    """One endpoint.

    Attributes:
        path: below PREFIX; it may end with NUMBER.
        parameters: that its query may have, each once.
    """

    method: str
    path: str
    document: type[msgspec.Struct]
    needs: EndpointNeeds
    parameters: tuple[str, ...] = ()


TABLE: Final = (
    Row("GET", "session", Session, EndpointNeeds.ANYONE),
    Row("GET", "who", Who, EndpointNeeds.SIGN_IN, ("account",)),
    Row("GET", "overview", Overview, EndpointNeeds.FIGURES),
    Row("GET", "history", SampledHour, EndpointNeeds.FIGURES),
    Row(
        "GET",
        "requests",
        RequestsPage,
        EndpointNeeds.REQUESTS,
        ("account", "after", "wait_s", "filter", "limit"),
    ),
    Row("GET", f"requests/{NUMBER}", RequestInFull, EndpointNeeds.REQUESTS, ("account",)),
    Row("GET", "access", AccessOverview, EndpointNeeds.SIGN_IN, ("account",)),
    Row("POST", "access/explain", ExplainedSas, EndpointNeeds.SIGN_IN, ("account",)),
    Row("GET", "files/opens", ShownFileOpens, EndpointNeeds.FIGURES, ("account", "share", "path")),
    Row("GET", "leases", LeaseTime, EndpointNeeds.SIGN_IN, ("account", "container", "blob")),
    Row("POST", "tokens", ExchangedToken, EndpointNeeds.ANYONE),
)
"""Every endpoint of version 1. Without an issuer and a client id, `tokens` is not there."""

UNSIGNED: Final = frozenset(row.path for row in TABLE if row.needs is EndpointNeeds.ANYONE)
"""The paths that need no signature."""
