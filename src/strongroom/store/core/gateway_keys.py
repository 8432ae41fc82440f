"""The keys of records of which each gateway writes its own, so that gateways do not meet there.

Lives here: the key of one gateway, and all of them. The table of all keys is in keys.py. That of
gateway 0 is the one that a store with a single gateway has.
"""

from __future__ import annotations

from strongroom.engines.base import Key, key_of
from strongroom.store.core.keys import LEDGER_KEY, UPLOAD_KEY, after


def ledger(gateway: int) -> Key:
    """The key of the ledger that a gateway writes, by its number."""
    return _of_gateway(LEDGER_KEY, gateway)


def ledger_range() -> tuple[bytes, bytes]:
    """(first, until) of the ledgers of all gateways."""
    return LEDGER_KEY.name, after(LEDGER_KEY.name)


def ledger_gateway(key: bytes) -> int | None:
    """Return the number of the gateway that writes this ledger; None for any other key."""
    return _gateway_in(key, LEDGER_KEY)


def upload(gateway: int) -> Key:
    """The key of the record in which a gateway counts the blocks that it stages."""
    return _of_gateway(UPLOAD_KEY, gateway)


def upload_gateway(key: bytes) -> int | None:
    """Return the number of the gateway that writes this record of an upload; None for any other
    key."""
    return _gateway_in(key, UPLOAD_KEY)


def _of_gateway(first: Key, gateway: int) -> Key:
    return key_of((True, first.name + bytes((gateway,)))) if gateway else first


def _gateway_in(key: bytes, first: Key) -> int | None:
    if key == first.name:
        return 0
    return key[1] if len(key) == 2 and key[:1] == first.name and key[1] else None
