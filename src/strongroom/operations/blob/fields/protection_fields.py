"""The headers of immutability policies and legal holds, in requests and answers.

Source: headers of "Set Blob Immutability Policy", "Set Blob Legal Hold", "Put Blob" and "Get Blob
Properties".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import blob as blob_errors
from strongroom.errors.core import missing_header
from strongroom.operations.core.fields import flag, header
from strongroom.operations.core.spec import Field, Returned
from strongroom.semantics.blob.immutability import (
    HOLD_HEADER,
    LOCKED,
    MODE_HEADER,
    UNLOCKED,
    UNTIL_HEADER,
    Immutability,
)
from strongroom.values import rfc1123
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_NAMES: Final = (UNTIL_HEADER, MODE_HEADER, HOLD_HEADER)
_POLICY_NAMES: Final = (UNTIL_HEADER, MODE_HEADER)
REFUSALS: Final = (
    blob_errors.IMMUTABILITY_NOT_ENABLED,
    blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY,
    blob_errors.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD,
)
"""The errors of a write that protects a blob, or replaces one."""
PROTECTED: Final = REFUSALS[1:]
"""The errors that protection causes in any change or deletion of a blob."""


def _policy(request: Request, query: Query) -> Immutability:
    until = request.headers.get(UNTIL_HEADER)
    if until is None:
        raise missing_header(UNTIL_HEADER)
    mode = request.headers.get(MODE_HEADER)
    locked = mode is not None and wire.one_of(MODE_HEADER, mode, (UNLOCKED, LOCKED)) == LOCKED
    return Immutability(wire.date(UNTIL_HEADER, until), locked)


def _protection(request: Request, query: Query) -> Immutability | None:
    """The protection that a write gives its blob; None for none."""
    if request.headers.has_none_of(_NAMES):
        return None
    sent = request.headers.get(HOLD_HEADER)
    hold = sent is not None and flag(HOLD_HEADER, sent)
    if request.headers.has_none_of(_POLICY_NAMES):
        return Immutability(hold=True) if hold else None
    policy = _policy(request, query)
    return Immutability(policy.until, policy.locked, hold)


POLICY: Final = Field("policy", _policy, headers=_POLICY_NAMES)
HOLD: Final = header("hold", HOLD_HEADER, flag, required=True)
PROTECTION: Final = Field("immutability", _protection, headers=_NAMES)
"""The immutability policy and the legal hold that a write sets."""
HELD: Final = Returned(HOLD_HEADER, lambda result: str(result.hold).lower())


def policy_headers(protection: Immutability) -> tuple[tuple[str, str], ...]:
    """No headers if there is no policy."""
    if not protection.until:
        return ()
    return ((UNTIL_HEADER, rfc1123(protection.until)), (MODE_HEADER, protection.mode))


def protection_headers(protection: Immutability) -> tuple[tuple[str, str], ...]:
    """The headers of a blob's policy and legal hold, as reads report them."""
    hold = ((HOLD_HEADER, "true"),) if protection.hold else ()
    return (*policy_headers(protection), *hold)
