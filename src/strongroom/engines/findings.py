"""What an inspection of a store says of its problems, whichever engine keeps the store.

Lives here: `Finding`. Must not live here: the inspections (embedded/upkeep/check.py,
postgres/inspection.py), which references must hold (store/integrity.py).
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Ref


class Finding(msgspec.Struct, frozen=True):
    """A problem that a check has found, and its place.

    Arguments:
        subject: a record of what the problem belongs to, if there is one.
        content: the content that is damaged, if one is.
    """

    place: str
    problem: str
    subject: Ref | None = None
    content: int | None = None
