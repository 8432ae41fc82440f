"""The record that a lock or an election stores under its key: JSON that people can read.

    {"v": 1, "owner": "9f86d081884c7d65-1" | null, "fence": 7, "ttl": 15, "seq": 3,
     "who": "host:4711", "since": "2026-11-21T08:00:00.000Z", "queue": [["nonce", "who"], ...],
     "value": ..., "end": "broken by ..."}

`owner` is the nonce of one hold. It is null in the tombstone that a release writes. `fence` never
decreases, because a record is never deleted. `seq` differs between any two writes of one owner, so
no two of its writes have the same content. From that a reader can tell which attempt was written,
and an observer sees that the owner is alive. `who`, `since` and `end` are for people; no rule reads
them. Must not live here: what is done with a record (recipes/).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from strongroom.coordination.errors import CorruptRecord

FENCE_MAX: Final = 2**63 - 1
DECODE_ERRORS: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""The errors of decoding foreign JSON, which may be nested too deep or hold too long a number."""


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode
_decode: Final = json.JSONDecoder(parse_constant=_no_number).decode
_quoted: Final = json.encoder.encode_basestring_ascii


@dataclass(frozen=True, slots=True)
class Waiter:
    """One waiter in a fair queue: the nonce of its attempt, and its label for people."""

    nonce: str
    who: str


@dataclass(frozen=True, slots=True)
class LockRecord:
    """The current owner of a lock or an election, and its fence; see the module's docstring."""

    owner: str | None
    fence: int
    ttl_s: float
    seq: int
    who: str = ""
    since: str = ""
    queue: tuple[Waiter, ...] = ()
    value: Any = None
    end: str = ""

    def tombstone(self, seq: int) -> LockRecord:
        """Return the tombstone of a release: no owner; the fence, queue and value are kept."""
        return LockRecord(
            None,
            self.fence,
            self.ttl_s,
            seq,
            self.who,
            self.since,
            self.queue,
            self.value,
            self.end,
        )

    def position(self, nonce: str) -> int | None:
        """Return how many waiters are ahead of this one in the queue; None if it is not queued."""
        for at, waiter in enumerate(self.queue):
            if waiter.nonce == nonce:
                return at
        return None


def encode_lock(record: LockRecord) -> bytes:
    """Return the JSON of a lock record."""
    # Written by hand: a general JSON encoder takes three times as long here.
    owner = "null" if record.owner is None else _quoted(record.owner)
    parts = [
        f'{{"v":1,"owner":{owner},"fence":{record.fence},"ttl":{record.ttl_s!r},'
        f'"seq":{record.seq},"who":{_quoted(record.who)},"since":{_quoted(record.since)}'
    ]
    if record.queue:
        waiting = ",".join(f"[{_quoted(w.nonce)},{_quoted(w.who)}]" for w in record.queue)
        parts.append(f'"queue":[{waiting}]')
    if record.value is not None:
        parts.append(f'"value":{_encode(record.value)}')
    if record.end:
        parts.append(f'"end":{_quoted(record.end)}')
    return (",".join(parts) + "}").encode()


def decode_lock(key: str, value: bytes) -> LockRecord:
    """Return the lock record that this JSON holds. Raises: CorruptRecord."""
    try:
        document = _decode(value.decode())
        record = LockRecord(
            owner=document["owner"],
            fence=document["fence"],
            ttl_s=float(document["ttl"]),
            seq=document["seq"],
            who=str(document.get("who", "")),
            since=str(document.get("since", "")),
            queue=tuple(Waiter(str(n), str(w)) for n, w in document.get("queue", ())),
            value=document.get("value"),
            end=str(document.get("end", "")),
        )
        is_valid = (
            document["v"] == 1
            and (document["owner"] is None or isinstance(document["owner"], str))
            and type(document["fence"]) is int
            and 0 <= record.fence <= FENCE_MAX
            and type(document["seq"]) is int
            and 0 <= record.ttl_s < float("inf")
        )
    except (*DECODE_ERRORS, AttributeError) as error:
        raise CorruptRecord(key, value, "a lock record") from error
    if not is_valid:
        raise CorruptRecord(key, value, "a lock record")
    return record


def encode_document(document: dict[str, Any]) -> bytes:
    """Return the compact JSON of another recipe's record, which carries its own nonce and seq."""
    return _encode(document).encode()


def decode_document(key: str, value: bytes, kind: str) -> dict[str, Any]:
    """Return the JSON object that was read under a key.

    Arguments:
        key: the key, quoted in the error message.
        kind: the required value of the object's "kind" member.

    Raises: CorruptRecord: the bytes are not JSON, not an object, or of another kind.
    """
    try:
        document = _decode(value.decode())
    except DECODE_ERRORS as error:
        raise CorruptRecord(key, value, f"a {kind} record") from error
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise CorruptRecord(key, value, f"a {kind} record")
    return document
