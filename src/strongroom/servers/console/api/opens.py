"""The document of `GET files/opens`: who has a file open, and what that means for others.

Lives here: frozen structs, each field with whose it is. Must not live here: how they are read
(servers/console/open_files.py), the other documents (documents.py). Ids, offsets and lengths have
64 bits. They are texts, since JavaScript would change large numbers.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from strongroom.servers.console.marks import OWN

CachingKindName = Literal["", "lease", "oplock"]


class ShownOpen(msgspec.Struct, frozen=True, kw_only=True):
    """One open of the file.

    Attributes:
        id: of the handle, as List Handles shows it, and as Force Close Handles takes it; "" for a
            REST operation under way, which ends by itself.
        protocol: "REST", or SMB with its dialect as "SMB 3.1.1"; "SMB" while a durable handle
            waits for its client.
        user: the account that has logged on.
        client: the client's address and port; session: of SMB, as List Handles shows it.
        reconnected_time: when a client came back to its durable handle; None = never.
        access: those of Read, Write and Delete that it uses; access_mask: SMB's bits in full.
        share_mode: those of Read, Write and Delete that it lets others use meanwhile.
        caching: those of Read, Write and Handle that its client caches.
        is_breaking: whether its client was asked to give caching up, and has not answered yet.
        is_disconnected: whether a durable handle waits for its client.
    """

    id: Annotated[str, OWN] = ""
    protocol: Annotated[str, OWN] = ""
    user: Annotated[str, OWN] = ""
    client: Annotated[str, OWN] = ""
    session: Annotated[str, OWN] = ""
    opened_time: Annotated[str | None, OWN] = None
    reconnected_time: Annotated[str | None, OWN] = None
    access: Annotated[tuple[str, ...], OWN] = ()
    access_mask: Annotated[str, OWN] = ""
    share_mode: Annotated[tuple[str, ...], OWN] = ()
    caching_kind: Annotated[CachingKindName, OWN] = ""
    caching: Annotated[tuple[str, ...], OWN] = ()
    is_breaking: Annotated[bool, OWN] = False
    is_durable: Annotated[bool, OWN] = False
    is_disconnected: Annotated[bool, OWN] = False


class ShownLock(msgspec.Struct, frozen=True, kw_only=True):
    """A byte-range lock of the file, or a request for one that waits.

    Attributes:
        open_id: the `id` of the open that has it.
    """

    open_id: Annotated[str, OWN] = ""
    offset: Annotated[str, OWN] = ""
    length: Annotated[str, OWN] = ""
    is_exclusive: Annotated[bool, OWN] = False
    is_waiting: Annotated[bool, OWN] = False


class ShownFileOpens(msgspec.Struct, frozen=True, kw_only=True):
    """`GET files/opens`: the opens of one file or directory at this moment.

    Attributes:
        path: as its names are stored, with `/` between them; "" = the share's root.
        etag: as Get File Properties answers it; it differs whenever the properties do.
        lease_state: in the words of Get File Properties; lease_duration: "infinite" while leased.
        is_delete_pending: whether it goes when its last open is closed.
        opens, locks: the oldest, up to OPENS_MAX and LOCKS_MAX; open_count, lock_count: of all.
    """

    path: Annotated[str, OWN] = ""
    is_directory: Annotated[bool, OWN] = False
    etag: Annotated[str, OWN] = ""
    lease_state: Annotated[str, OWN] = ""
    lease_duration: Annotated[str, OWN] = ""
    is_delete_pending: Annotated[bool, OWN] = False
    opens: Annotated[tuple[ShownOpen, ...], OWN] = ()
    open_count: Annotated[int, OWN] = 0
    locks: Annotated[tuple[ShownLock, ...], OWN] = ()
    lock_count: Annotated[int, OWN] = 0


OPENS_MAX: Final = 500
LOCKS_MAX: Final = 500

DOCUMENTS: Final = (ShownFileOpens,)
"""The documents that are answers."""
