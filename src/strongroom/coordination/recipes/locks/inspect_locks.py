"""Inspecting locks and elections from outside, and breaking one, for people and consoles.

Lives here: `show`, `list` and `break` as steps.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Final

from strongroom.coordination.effects import (
    Applied,
    Conflict,
    LeaseAction,
    LeaseTerms,
    Steps,
    cas,
    get,
    list_keys,
)
from strongroom.coordination.errors import BadName, ChangedSince, StoreUnavailable
from strongroom.coordination.recipes.locks.lock_state import LockView, observed_record, view_of
from strongroom.coordination.recipes.waiting import WriteRetries
from strongroom.coordination.schema.names import key_of, name_of
from strongroom.coordination.schema.records import decode_lock, encode_lock
from strongroom.coordination.session.context import RecipeContext

_TIMEOUT_S: Final = 5.0
_TRIES: Final = 8


def show_steps(context: RecipeContext, kind: str, name: str) -> Steps[LockView | None]:
    """Return the view of a lock, by one read; None if there never was one.

    Raises: StoreUnavailable, StoreRefused, CorruptRecord.
    """
    key = key_of(kind, name)
    sent_s = context.clock.monotonic_s()
    entry = yield from get(key, _TIMEOUT_S)
    return view_of(context, name, key, observed_record(context, key, entry, sent_s))


def list_steps(context: RecipeContext, kind: str) -> Steps[list[str]]:
    """Return the names of all locks of a kind that ever existed, in the order of their keys.

    A key that encodes no name was not written by this toolkit, and is left out.
    """
    keys = yield from list_keys(f"{kind}/", _TIMEOUT_S)
    names = []
    for key in keys:
        with contextlib.suppress(BadName):
            names.append(name_of(key))
    return names


def break_steps(
    context: RecipeContext, kind: str, name: str, nonce: str | None = None
) -> Steps[LockView | None]:
    """End another client's hold now; return its view, or None if nobody held the lock.

    Arguments:
        nonce: the hold that is meant (`LockView.nonce`); None = whichever there is.

    The fence is counted up. So the holder's later writes are refused once the next holder has
    written. The holder learns of it at its next renewal, or at once if it watches.

    Raises:
        ChangedSince: the lock is free, or another hold has begun; nothing was written.
        StoreUnavailable: the store did not answer, or the outcome of the write is unknown.
    """
    key = key_of(kind, name)
    retries = WriteRetries(context, _TRIES)
    while retries.begin_attempt():
        sent_s = context.clock.monotonic_s()
        entry = yield from get(key, _TIMEOUT_S)
        view = view_of(context, name, key, observed_record(context, key, entry, sent_s))
        if nonce is not None and (view is None or view.nonce != nonce):
            raise ChangedSince(name)
        if entry is None or view is None or not view.held:
            return None
        record = decode_lock(key, entry.value)
        end = f"broken by {context.label} at {context.clock.wall_text()}"
        broken = replace(record.tombstone(record.seq + 1), fence=record.fence + 1, end=end)
        lease = None
        if context.promises.server_lease:
            lease = LeaseTerms(LeaseAction.BREAK, record.ttl_s, context.nonce())
        outcome = yield from cas(key, entry.version, encode_lock(broken), _TIMEOUT_S, lease)
        if isinstance(outcome, Applied):
            return view
        if not isinstance(outcome, Conflict):
            raise StoreUnavailable(f"it is not known whether {name!r} was broken; look again")
        yield retries.pause_after(outcome, entry.version)
    raise StoreUnavailable(f"{name!r} was written to all the time; it was not broken")
