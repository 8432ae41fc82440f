"""The interface between a connection and the server that it belongs to.

Lives here: the protocol class. Must not live here: the server (http/server.py), the connection
(http/protocol.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from strongroom.servers.http.buffers import BodyBuffers
from strongroom.servers.http.documents import DocumentBudget
from strongroom.servers.http.large_answers import LargeAnswerBudget
from strongroom.servers.http.life import State
from strongroom.servers.http.settings import Handler, HttpSettings, Observer, RenderError
from strongroom.servers.http.turns import RequestTurns
from strongroom.slices import SliceTurns

C_contra = TypeVar("C_contra", contravariant=True)
"""A connection."""


class ConnectionOwner(Protocol[C_contra]):
    """The part of the server that a connection needs."""

    handler: Handler
    render_error: RenderError
    settings: HttpSettings
    observe: Observer | None
    draining: bool
    documents: DocumentBudget
    buffers: BodyBuffers
    large_answers: LargeAnswerBudget
    turns: RequestTurns
    slices: SliceTurns
    timeouts_s: Mapping[State, float]

    def admit(self, connection: C_contra) -> bool:
        """Count a new connection; return False if there are too many."""
        ...

    def warn_of_tls(self, peer: str) -> None:
        """Note that a client tries TLS on a port without it."""
        ...

    def forget(self, connection: C_contra) -> None:
        """Forget a connection that is over, as is its last handler."""
        ...
