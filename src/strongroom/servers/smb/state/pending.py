"""Requests in progress, and how CANCEL finds them.

Lives here: the table by message id and by AsyncId. Source: [MS-SMB2] sections 3.3.4.2, 3.3.5.16;
smb.md 1.7.
"""

from __future__ import annotations

from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbElement
from strongroom.servers.smb.state.sessions import SmbSession, TreeConnect
from strongroom.wire.smb.header import ASYNC_COMMAND, Header
from strongroom.wire.smb.statuses import STATUS_INSUFFICIENT_RESOURCES


class PendingRequests:
    """The requests of a connection that are in progress. At most `pending_max` may have been
    answered PENDING."""

    def __init__(self, pending_max: int) -> None:
        self._pending_max = pending_max
        self._by_message: dict[int, SmbElement] = {}
        self._by_async_id: dict[int, SmbElement] = {}
        self._last_async_id = 0

    def __len__(self) -> int:
        return len(self._by_message)

    @property
    def waiting_count(self) -> int:
        """The number of requests that were answered PENDING and still wait."""
        return len(self._by_async_id)

    def begin(self, element: SmbElement) -> None:
        self._by_message[element.header.message_id] = element

    def end(self, element: SmbElement) -> None:
        if self._by_message.get(element.header.message_id) is element:
            del self._by_message[element.header.message_id]

    def register_pending(self, element: SmbElement) -> int:
        """Returns its AsyncId. Raises: SmbError when too many wait."""
        if len(self._by_async_id) >= self._pending_max:
            raise SmbError(STATUS_INSUFFICIENT_RESOURCES)
        self._last_async_id += 1
        self._by_async_id[self._last_async_id] = element
        return self._last_async_id

    def remove_pending(self, async_id: int) -> None:
        """Remove a request that has its final answer."""
        self._by_async_id.pop(async_id, None)

    def cancel(self, header: Header, *, is_encrypted: bool) -> None:
        """Carry out CANCEL: cancel the request that a header names. An unknown one is no error.

        A CANCEL that came without encryption cannot cancel an encrypted request.
        """
        if header.flags & ASYNC_COMMAND:
            element = self._by_async_id.get(header.async_id)
        else:
            element = self._by_message.get(header.message_id)
        if element is None or (element.is_encrypted and not is_encrypted):
            return
        _cancel(element)

    def cancel_all(self) -> None:
        for element in {*self._by_message.values(), *self._by_async_id.values()}:
            _cancel(element)

    def cancel_waiting(self) -> None:
        """Cancel the requests that were answered PENDING."""
        for element in self._by_async_id.values():
            _cancel(element)

    def cancel_without_open(self, session: SmbSession, tree: TreeConnect | None = None) -> None:
        """Cancel those requests of a session, or of one of its tree connects, that have no open
        yet.

        A request that has an open is answered when the open ends.
        """
        for element in self._by_message.values():
            is_of_tree = tree is None or element.tree is tree
            if element.open is None and element.session is session and is_of_tree:
                _cancel(element)


def _cancel(element: SmbElement) -> None:
    if not element.cancelled.done():
        element.cancelled.set_result(None)
