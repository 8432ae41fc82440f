"""Coordination of many nodes over many stores: fenced locks, elections, ids, gates and more.

    from strongroom import coordination as coord
    client = coord.connect("azure://account/container")
    with client.lock("invoices", ttl=15, wait=30) as held:
        write(fence=held.fence)

The package imports nothing else of Strongroom. It needs only the standard library, until a store is
opened whose driver needs more. Lives here: the public names.
"""

from strongroom.coordination.aio import AioClient
from strongroom.coordination.client import Client
from strongroom.coordination.connect import connect, open_store
from strongroom.coordination.errors import (
    AlreadyHeld,
    BadName,
    ClientClosed,
    CoordinationError,
    CoordTimeout,
    CorruptRecord,
    LockLost,
    OutcomeUnknown,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.guards.fencing import Fenced, FencedOut, Token
from strongroom.coordination.hints import Hints, Multicast, multicast
from strongroom.coordination.recipes.classic_release import ListeningRelease, PollingRelease
from strongroom.coordination.recipes.election import AioElection, Election
from strongroom.coordination.recipes.election_core import LeaderView
from strongroom.coordination.recipes.gate import AioGate, Gate
from strongroom.coordination.recipes.gate_core import GateView
from strongroom.coordination.recipes.holding import AioHeld, Held
from strongroom.coordination.recipes.ids.classic_ids import (
    OptimisticData,
    OptimisticSyncStore,
    StoredText,
    UniqueIdGenerator,
)
from strongroom.coordination.recipes.ids.id_ranges import IdsExhausted, IdsUnavailable
from strongroom.coordination.recipes.ids.ids import AioIds, Ids
from strongroom.coordination.recipes.locks.lock import AioLock, Lock
from strongroom.coordination.recipes.locks.lock_state import LockView
from strongroom.coordination.recipes.locks.locks import AioLocks, HeldMany, Locks
from strongroom.coordination.recipes.locks.rwlock import AioRwLock, RwLock
from strongroom.coordination.recipes.members import AioMembers, AioMembership, Members, Membership
from strongroom.coordination.recipes.members_core import Change, Member
from strongroom.coordination.recipes.register import ABSENT, AioRegister, Register, SimpleLock
from strongroom.coordination.recipes.register_core import Swap, Versioned
from strongroom.coordination.recipes.slots.barrier import AioBarrier, Barrier
from strongroom.coordination.recipes.slots.barrier_core import BarrierBroken, PartiesDiffer
from strongroom.coordination.recipes.slots.inspect_slots import BarrierView, SlotsView, SlotView
from strongroom.coordination.recipes.slots.semaphore import AioSemaphore, PermitsDiffer, Semaphore
from strongroom.coordination.session.handles import HeldBase
from strongroom.coordination.store import Promises, Store

__all__ = [
    "ABSENT",
    "AioBarrier",
    "AioClient",
    "AioElection",
    "AioGate",
    "AioHeld",
    "AioIds",
    "AioLock",
    "AioLocks",
    "AioMembers",
    "AioMembership",
    "AioRegister",
    "AioRwLock",
    "AioSemaphore",
    "AlreadyHeld",
    "BadName",
    "Barrier",
    "BarrierBroken",
    "BarrierView",
    "Change",
    "Client",
    "ClientClosed",
    "CoordTimeout",
    "CoordinationError",
    "CorruptRecord",
    "Election",
    "Fenced",
    "FencedOut",
    "Gate",
    "GateView",
    "Held",
    "HeldBase",
    "HeldMany",
    "Hints",
    "Ids",
    "IdsExhausted",
    "IdsUnavailable",
    "LeaderView",
    "ListeningRelease",
    "Lock",
    "LockLost",
    "LockView",
    "Locks",
    "Member",
    "Members",
    "Membership",
    "Multicast",
    "OptimisticData",
    "OptimisticSyncStore",
    "OutcomeUnknown",
    "PartiesDiffer",
    "PermitsDiffer",
    "PollingRelease",
    "Promises",
    "Register",
    "RwLock",
    "Semaphore",
    "SimpleLock",
    "SlotView",
    "SlotsView",
    "Store",
    "StoreRefused",
    "StoreUnavailable",
    "StoredText",
    "Swap",
    "Token",
    "UniqueIdGenerator",
    "Unsupported",
    "Versioned",
    "connect",
    "multicast",
    "open_store",
]
