"""Inspecting the groups of members from outside, without a write.

Lives here: the groups of a store and the members of one group, as steps for people and consoles.
Must not live here: anything that joins, or that deletes a dead member's record (members_core.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from strongroom.coordination.effects import Steps, get
from strongroom.coordination.errors import BadName, CorruptRecord
from strongroom.coordination.recipes.members_core import (
    decode_member,
    group_prefix,
    nonce_of,
)
from strongroom.coordination.recipes.slots.slot_records import slot_name
from strongroom.coordination.schema.names import unescape
from strongroom.coordination.session.context import RecipeContext

_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as others see it.

    Attributes:
        who, since, data: see `Member`.
        ttl_s: how long it counts as a member without a renewal.
        left_s: in how many seconds this observer takes it for dead, without a renewal.
    """

    who: str
    since: str
    data: Any
    ttl_s: float
    left_s: float


def groups_of(keys: Collection[str]) -> dict[str, list[str]]:
    """Return the groups that have records among these keys, with the keys of each.

    A key that this toolkit did not write is left out.
    """
    groups: dict[str, list[str]] = {}
    for key in keys:
        escaped, _, _ = key.partition("/")[2].rpartition(".")
        try:
            group = unescape(escaped)
            if nonce_of(group_prefix(group), key) is not None:
                groups.setdefault(group, []).append(key)
        except BadName:
            continue
    return groups


def show_members_steps(
    context: RecipeContext, keys: Collection[str]
) -> Steps[tuple[MemberView, ...]]:
    """Return the living members among these keys (see `groups_of`), by one read each.

    Nothing is deleted, unlike `Members.list`. A record that no member wrote is left out.

    Raises: StoreUnavailable, StoreRefused.
    """
    views = []
    for key in keys:
        view = yield from _member_view(context, key)
        if view is not None:
            views.append(view)
    return tuple(views)


def _member_view(context: RecipeContext, key: str) -> Steps[MemberView | None]:
    clock, rules = context.clock, context.rules
    sent_s = clock.monotonic_s()
    entry = yield from get(key, _TIMEOUT_S)
    if entry is None:
        return None
    try:
        member = decode_member(key, entry.value)
    except CorruptRecord:
        return None
    seen_s = rules.observer_start_s(sent_s, clock.monotonic_s())
    since_s = context.sightings.since_s(slot_name(key, member.nonce), member.seq, seen_s)
    left_s = since_s + rules.observer_wait_s(member.ttl_s) - clock.monotonic_s()
    if left_s <= 0:
        return None
    return MemberView(member.who, member.since, member.data, member.ttl_s, left_s)
