"""The sessions of a connection, their tree connects, and their opens.

Lives here: the three, how they are found and how they end. Must not live here: the targets of opens
(commands/). Source: [MS-SMB2] sections 3.3.1.8 to 3.3.1.10; smb.md 2.2, 2.3, 5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from strongroom.auth.smb_keys import SessionKeys
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.security.authentication import Authentication
from strongroom.wire.smb.header import ALL_ONES, FileId
from strongroom.wire.smb.statuses import STATUS_FILE_CLOSED, STATUS_INSUFFICIENT_RESOURCES
from strongroom.wire.smb.structures import Piece
from strongroom.wire.smb.transform import TransformHeader

TREES_MAX: Final = 256
OPENS_MAX: Final = 16_384
ALL_TREES_MAX: Final = 65_536
_ID_MAX: Final = 0xFFFF_FFFF

RandomId = Callable[[], int]
"""Returns 64 unpredictable bits."""


class SharedLimit:
    """A limit on the count of something that all sessions share, such as tree connects.

    Attributes:
        remaining: how many more of them there may be.
    """

    __slots__ = ("remaining",)

    def __init__(self, limit: int) -> None:
        self.remaining = limit

    def acquire(self) -> None:
        """Count one more. Raises: SmbError INSUFFICIENT_RESOURCES when the limit is reached."""
        if not self.remaining:
            raise SmbError(STATUS_INSUFFICIENT_RESOURCES)
        self.remaining -= 1

    def release(self, count: int = 1) -> None:
        """Count those no more that have ended."""
        self.remaining += count


class FrameCipher(Protocol):
    """Encrypts and decrypts a session's frames (encryption.py)."""

    def next_nonce(self) -> bytes: ...

    def seal(self, nonce: bytes, pieces: Sequence[Piece]) -> list[Piece]: ...

    def open(self, header: TransformHeader, frame: memoryview) -> memoryview: ...


class OpenTarget(Protocol):
    """The target of an open: the handle of a file or a directory, or a pipe."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the share's root down, or the pipe's name."""
        ...

    def begin_wait(self, reason: DisconnectReason) -> bool:
        """Let a durable handle wait for its client to reconnect, after LOGGED_OFF or DISCONNECTED.
        Returns: whether it waits; if not, it must be ended."""
        ...

    async def end(self) -> None:
        """End the target without a CLOSE, after its open has left every table. Waiting requests on
        it are answered, its locks are freed, and delete-on-close is carried out."""
        ...


class SmbOpen:
    """An open, which a FileId names within its session.

    Attributes:
        channel_sequence: the newest that a request carried (smb.md 1.6).
        first_named: called when a request names the open by its FileId for the first time, since
            its client then has the answer to the CREATE. None = nothing is to be called.
    """

    __slots__ = ("channel_sequence", "file_id", "first_named", "target", "tree")

    def __init__(self, file_id: FileId, tree: TreeConnect, target: OpenTarget) -> None:
        self.file_id = file_id
        self.tree = tree
        self.target = target
        self.channel_sequence = 0
        self.first_named: Callable[[], None] | None = None


class TreeConnect:
    """A share that a session is connected to.

    Attributes:
        share: the share's name as the client wrote it.
        access: the ShareAccess of the services; None = IPC$, which has pipes only.
    """

    __slots__ = ("access", "id", "share")

    def __init__(self, tree_id: int, share: str, access: Any) -> None:
        self.id = tree_id
        self.share = share
        self.access = access

    @property
    def has_pipes(self) -> bool:
        """Whether it is IPC$."""
        return self.access is None


class SmbSession:
    """An authenticated caller on one connection, or one whose authentication is under way.

    Attributes:
        id: 64 random bits; neither 0 nor all ones.
        account: the account whose key was proven; "" until the authentication is complete.
        account_key: that key; b"" until the authentication is complete.
        workstation: the name that the client gives itself; it is not verified.
        keys, cipher: None until the authentication is complete. `cipher` is also set where
            encryption is not required.
        authentication: the one that is under way; None = none is.
        preauth: the hash over the messages of the first authentication.
        must_encrypt: whether an unencrypted request is refused.
        must_sign: whether a request that is neither signed nor encrypted is refused.
        is_expired: whether only LOGOFF, CLOSE and unlocking are allowed, and a new authentication.
        owner: the HandleOwner of its handles (commands/targets.py); None until its first open.
    """

    def __init__(
        self, session_id: int, random_id: RandomId, all_trees: SharedLimit | None = None
    ) -> None:
        self.id = session_id
        self._all_trees = SharedLimit(ALL_TREES_MAX) if all_trees is None else all_trees
        self.account = ""
        self.account_key = b""
        self.workstation = ""
        self.keys: SessionKeys | None = None
        self.cipher: FrameCipher | None = None
        self.authentication: Authentication | None = None
        self.preauth = b""
        self.must_encrypt = False
        self.must_sign = False
        self.is_expired = False
        self.owner: Any = None
        self.trees: dict[int, TreeConnect] = {}
        self.opens: dict[int, SmbOpen] = {}
        self._random_id = random_id
        self._last_tree_id = 0

    @property
    def is_valid(self) -> bool:
        """Whether the session is authenticated."""
        return self.keys is not None

    def add_tree(self, share: str, access: Any) -> TreeConnect:
        """Connect to a share. Raises: SmbError when there are too many tree connects."""
        if len(self.trees) >= TREES_MAX:
            raise SmbError(STATUS_INSUFFICIENT_RESOURCES)
        self._all_trees.acquire()
        while True:
            self._last_tree_id = self._last_tree_id % (_ID_MAX - 1) + 1
            if self._last_tree_id not in self.trees:
                break
        tree = TreeConnect(self._last_tree_id, share, access)
        self.trees[tree.id] = tree
        return tree

    def add_open(self, tree: TreeConnect, target: OpenTarget, persistent: int) -> SmbOpen:
        """Give an open its FileId. Raises: SmbError when there are too many; the target is then not
        ended.

        `persistent` is the half that stays when a durable open moves to a new connection.
        """
        if len(self.opens) >= OPENS_MAX:
            raise SmbError(STATUS_INSUFFICIENT_RESOURCES)
        while True:
            volatile = self._random_id()
            if volatile not in (0, ALL_ONES) and volatile not in self.opens:
                break
        opened = SmbOpen(FileId(persistent, volatile), tree, target)
        self.opens[volatile] = opened
        return opened

    def find_open(self, file_id: FileId, *, is_inherited: bool = False) -> SmbOpen:
        """Return the open that a FileId names. Raises: SmbError(FILE_CLOSED).

        An inherited FileId comes from the chain, so that the client may not know it yet.
        """
        opened = self.opens.get(file_id.volatile)
        if opened is None or opened.file_id.persistent != file_id.persistent:
            raise SmbError(STATUS_FILE_CLOSED)
        if opened.first_named is not None and not is_inherited:
            opened.first_named()
            opened.first_named = None
        return opened

    def remove_open(self, gone: SmbOpen) -> bool:
        """Remove an open from the table, so that its FileId is invalid; its target is not ended.

        Returns: whether it was still there. Of several concurrent closes, one gets True.
        """
        if self.opens.get(gone.file_id.volatile) is not gone:
            return False
        del self.opens[gone.file_id.volatile]
        return True

    async def end_tree(self, tree: TreeConnect) -> None:
        if self.trees.get(tree.id) is tree:
            del self.trees[tree.id]
            self._all_trees.release()
        await self._end(
            [one for one in self.opens.values() if one.tree is tree],
            DisconnectReason.TREE_DISCONNECTED,
        )

    async def end(self, reason: DisconnectReason) -> None:
        self._all_trees.release(len(self.trees))
        self.trees.clear()
        await self._end(list(self.opens.values()), reason)

    async def _end(self, opens: list[SmbOpen], reason: DisconnectReason) -> None:
        # All opens leave the table before the first await, so no request can find them.
        gone = [one for one in opens if self.remove_open(one)]
        # Durable targets come first: a client may reconnect while the others are being closed.
        left = [one.target for one in gone if not one.target.begin_wait(reason)]
        if left:
            # The shield lets this finish even if the request is cancelled: no one else ends them.
            await asyncio.shield(asyncio.ensure_future(_end_targets(left)))


async def _end_targets(targets: Iterable[OpenTarget]) -> None:
    for one in targets:
        await one.end()
