"""What other parts of the program add to the read API: the tail of requests, and coordination.

Lives here: the interfaces. Must not live here: their answers. Nothing below `app` knows the toolkit
of coordination, so `console/` registers its endpoints here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from strongroom.servers.console.api.documents import RequestInFull, RequestsPage
from strongroom.servers.console.api.figures import Tail
from strongroom.servers.console.viewers import Viewer


class RequestsPart(Protocol):
    """The tail of requests."""

    @property
    def after(self) -> Tail: ...

    async def page(
        self,
        viewer: Viewer,
        query: Mapping[str, str],
        on_disconnect: Callable[[Callable[[], None]], None],
    ) -> RequestsPage:
        """Return what the viewer may see of the newest requests, perhaps after a wait.

        Arguments:
            query: the parameters, decoded, none of them unknown.
            on_disconnect: has a function called when the client is gone.

        Raises: ApiRefusal.
        """
        ...

    async def in_full(self, viewer: Viewer, number: int) -> RequestInFull:
        """Return one request. Raises: ApiRefusal: the viewer may not see it, or it is gone."""
        ...


class MountedRequest(NamedTuple):
    """A request to a mounted part; its viewer is known.

    Attributes:
        path: behind the part's name, as sent: "" or with a leading slash.
        query: the parameters, decoded, without `account`.
        if_match: the header, or None.
    """

    method: str
    path: str
    query: Mapping[str, str]
    if_match: str | None
    body: bytes
    viewer: Viewer


class MountedPart(Protocol):
    """Answers whatever lies below one name. Each answer is a document whose fields are marked."""

    body_bytes_max: int

    async def answer(self, asked: MountedRequest) -> msgspec.Struct:
        """Return the document of the answer. Raises: ApiRefusal."""
        ...
