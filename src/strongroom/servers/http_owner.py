"""What a connection needs of the server that it belongs to.

Lives here: the shape. Must not live here: the server (http.py), the connection (http_protocol.py).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from strongroom.servers.http_documents import Documents
from strongroom.servers.http_settings import Handler, HttpSettings, Observer, RenderError

C = TypeVar("C")
"""A connection."""


class ConnectionOwner(Protocol[C]):
    """What a connection needs of its server."""

    handler: Handler
    render_error: RenderError
    settings: HttpSettings
    observe: Observer | None
    draining: bool
    documents: Documents
    served_last: C | None

    def admit(self, connection: C) -> bool:
        """Count a new connection; False when there are too many."""
        ...

    def forget(self, connection: C) -> None:
        """The connection is over, and so is its last handler."""
        ...

    def hold(self, connection: C, size_bytes: int) -> None:
        """A large answer begins to be sent from memory."""
        ...

    def let_go(self, connection: C) -> None:
        """It has been sent, or given up. Idempotent."""
        ...
