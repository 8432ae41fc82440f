"""Pop receipts: signed tokens that only a retrieval, put or update can issue.

A receipt names the place where its retrieval, put or update has left the message. The next one
moves the message elsewhere, so the old receipt becomes stale by itself. Whether the message is
still there: messages.py. Source: "Get Messages", "Delete Message": a receipt is opaque, and a
malformed one is refused.

    place (17 bytes) | MAC over the place with the queue's secret (12) | CRC-32 of both (4)

in base64 for URLs: 44 characters without padding. The CRC shows that a text is no receipt, or a
damaged one. A receipt of another queue, or of an earlier queue of this name, has a correct CRC. The
CRC is no protection against forgery; the MAC is.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import zlib
from typing import Final

from strongroom.errors.core import StorageError, invalid_query

PLACE_BYTES: Final = 17
_MAC_BYTES: Final = 12
_SUM_BYTES: Final = 4
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{44}")
_SIGNED: Final = slice(None, PLACE_BYTES + _MAC_BYTES)


def seal(secret: bytes, place: bytes) -> str:
    """`secret` is the queue's own; `place` has 17 bytes."""
    signed = place + _mac(secret, place)
    return base64.urlsafe_b64encode(signed + _sum(signed)).decode("ascii")


def open_receipt(secret: bytes, text: str) -> bytes | None:
    """The place in a receipt; None when it was not sealed with this secret.

    Raises: InvalidQueryParameterValue for a text that is no receipt.
    """
    if _FORM.fullmatch(text) is None:
        raise _malformed(text)
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error:
        raise _malformed(text) from None
    signed = raw[_SIGNED]
    if _sum(signed) != raw[len(signed) :]:
        raise _malformed(text)
    place, mac = signed[:PLACE_BYTES], signed[PLACE_BYTES:]
    return place if hmac.compare_digest(_mac(secret, place), mac) else None


def _mac(secret: bytes, place: bytes) -> bytes:
    return hmac.digest(secret, place, "sha256")[:_MAC_BYTES]


def _sum(signed: bytes) -> bytes:
    return zlib.crc32(signed).to_bytes(_SUM_BYTES, "big")


def _malformed(text: str) -> StorageError:
    return invalid_query("popreceipt", text, "Invalid pop receipt format")
