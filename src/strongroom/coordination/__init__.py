"""Coordination of many nodes: locks with fencing tokens, elections, ids, gates, over many stores.

    from strongroom import coordination as coord
    client = coord.connect("azure://account/container")
    with client.lock("invoices", ttl=15, wait=30) as held:
        write(fence=held.fence)

Imports nothing else of Strongroom, and nothing beyond the standard library until a store that needs
more is asked for. Lives here: the names for users. Must not live here: code.
"""

from strongroom.coordination.aio import AioClient
from strongroom.coordination.client import Client
from strongroom.coordination.connect import connect, open_store
from strongroom.coordination.errors import (
    AlreadyHeld,
    BadName,
    CoordinationError,
    CoordTimeout,
    CorruptRecord,
    LockLost,
    OutcomeUnknown,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.recipes.election import AioElection, Election
from strongroom.coordination.recipes.election_core import LeaderView
from strongroom.coordination.recipes.lock import AioHeld, AioLock, Held, Lock
from strongroom.coordination.recipes.lock_state import LockView
from strongroom.coordination.recipes.register import ABSENT, AioRegister, Register, SimpleLock
from strongroom.coordination.recipes.register_core import Swap, Versioned
from strongroom.coordination.store import Promises, Store

__all__ = [
    "ABSENT",
    "AioClient",
    "AioElection",
    "AioHeld",
    "AioLock",
    "AioRegister",
    "AlreadyHeld",
    "BadName",
    "Client",
    "CoordTimeout",
    "CoordinationError",
    "CorruptRecord",
    "Election",
    "Held",
    "LeaderView",
    "Lock",
    "LockLost",
    "LockView",
    "OutcomeUnknown",
    "Promises",
    "Register",
    "SimpleLock",
    "Store",
    "StoreRefused",
    "StoreUnavailable",
    "Swap",
    "Unsupported",
    "Versioned",
    "connect",
    "open_store",
]
