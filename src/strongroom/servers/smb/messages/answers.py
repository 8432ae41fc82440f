"""The frame of answers: headers, padding, signatures, encryption.

Lives here: putting a frame together. Source: [MS-SMB2] sections 3.3.4.1, 3.3.4.1.3, 3.3.4.1.4;
smb.md 1.4, 1.8, 1.9. Nothing here needs the event loop, so that a thread may do it for large
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom.servers.smb.security.signing import signature
from strongroom.servers.smb.state.sessions import FrameCipher
from strongroom.wire.smb.compounds import padding
from strongroom.wire.smb.header import (
    ASYNC_COMMAND,
    COPIED_FLAGS,
    HEADER_BYTES,
    SERVER_TO_REDIR,
    SIGNED,
    Header,
    write_header,
)
from strongroom.wire.smb.structures import Piece

_WORD: Final = 0xFFFF_FFFF


class OutgoingMessage(msgspec.Struct, frozen=True):
    """One answer of a frame.

    Attributes:
        body: in pieces.
        signing_key: None = it is not signed.
    """

    header: Header
    body: tuple[Piece, ...]
    signing_key: bytes | None = None

    @property
    def size_bytes(self) -> int:
        """The size without padding."""
        return HEADER_BYTES + sum(map(len, self.body))

    def with_credits(self, credits: int) -> OutgoingMessage:
        header = msgspec.structs.replace(self.header, credits=credits)
        return msgspec.structs.replace(self, header=header)


class Sealing(msgspec.Struct, frozen=True):
    """How a frame is encrypted: the session's cipher, and a nonce for this frame only."""

    cipher: FrameCipher
    nonce: bytes


def answer_header(
    request: Header,
    status: int,
    *,
    credits: int = 0,
    async_id: int = 0,
    session_id: int | None = None,
    tree_id: int | None = None,
    is_signed: bool = False,
) -> Header:
    """`async_id` is that of a request that is or was answered PENDING, else 0. The other ids are
    those of the request where None is given."""
    flags = request.flags & COPIED_FLAGS | SERVER_TO_REDIR
    flags |= SIGNED if is_signed else 0
    process_id, tree = request.process_id, request.tree_id if tree_id is None else tree_id
    if async_id:
        flags |= ASYNC_COMMAND
        process_id, tree = async_id & _WORD, async_id >> 32
    return Header(
        credit_charge=request.credit_charge,
        status=status,
        command=request.command,
        credits=credits,
        flags=flags,
        message_id=request.message_id,
        process_id=process_id,
        tree_id=tree,
        session_id=request.session_id if session_id is None else session_id,
    )


def frame(
    answers: Sequence[OutgoingMessage], algorithm: int, sealing: Sealing | None
) -> list[Piece]:
    """`algorithm` is that of signatures. Without `sealing` the frame is not encrypted."""
    pieces: list[Piece] = []
    for number, answer in enumerate(answers, 1):
        header, body = answer.header, answer.body
        if number < len(answers):
            filling = padding(answer.size_bytes)
            body = (*body, filling) if filling else body
            following = answer.size_bytes + len(filling)
            header = msgspec.structs.replace(header, next_command=following)
        if answer.signing_key is not None:
            whole: tuple[Piece, ...] = (write_header(header), *body)
            made = signature(algorithm, answer.signing_key, header, whole, from_server=True)
            header = msgspec.structs.replace(header, signature=made)
        pieces += (write_header(header), *body)
    return pieces if sealing is None else sealing.cipher.seal(sealing.nonce, pieces)
