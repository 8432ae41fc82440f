"""The records of a queue's messages, and their codecs.

Lives here: the message and its text, its expiry record, the ledger, and the stored form of a text.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom import limits
from strongroom.semantics.queue.messages import Message
from strongroom.store.core.records import Codec, ShortCodec

CHUNK_BYTES: Final = 48 * 1024


class MessageRecord(msgspec.Struct, frozen=True, array_like=True):
    """A message: `number` is the stamp of its Put. A short text is stored here, a longer one in
    `chunks` records of its own, so that a retrieval does not write it again."""

    message: Message
    number: int
    text: str = ""
    chunks: int = 0


class Expiry(msgspec.Struct, frozen=True, array_like=True):
    """The present place of a message that expires, and the number of its text's chunks."""

    place: bytes
    chunks: int = 0


class Ledger(msgspec.Struct, frozen=True, array_like=True):
    """What one gateway, or the first one of all, knows of a whole epoch. That of gateway 0 exists
    from the epoch's creation to the beginning of its sweep; the others begin when they are used.

    Attributes:
        count: how many messages the gateway has put, less those that it has removed. It is negative
            if it removed those of others. The sum over all ledgers is the number of messages,
            including hidden ones and expired ones that are not swept.
        due: when the job that sweeps expired ones is due, 0 = there is none. A ledger's job is due
            before each message of its gateway expires.
        others: in the ledger of gateway 0, the numbers of the other gateways that have one.
    """

    count: int = 0
    due: int = 0
    others: tuple[int, ...] = ()


MESSAGE: Final = Codec(MessageRecord)
EXPIRY: Final = Codec(Expiry)
LEDGER: Final = ShortCodec(Ledger, ((),))
TEXT: Final = Codec(bytes)


def chunks_of(text: str) -> tuple[bytes, ...]:
    """No chunks for a text that is short enough for the message's record."""
    most = limits.INLINE_TEXT_BYTES_MAX
    if len(text) * 4 <= most:
        return ()
    data = text.encode()
    if len(data) <= most:
        return ()
    return tuple(data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES))
