"""Conditional requests: which combinations of conditions are allowed, and when each is met.

If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since and x-ms-if-tags, for reads, writes,
containers and copy sources. Their parsing: wire/core/headers.py. Source: "Specifying conditional
headers for Blob service operations".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.semantics.core import tag_expressions
from strongroom.values import TICKS_PER_S, Etag, etag_text, rfc1123

ANY: Final = ("*",)
READ_RULES_SINCE: Final = "2013-08-15"
NONE_MATCH_ANY_FAILS_SINCE: Final = "2016-05-31"
_NO_TAGS: Final[Mapping[str, str]] = {}


class Conditions(msgspec.Struct, frozen=True):
    """The conditions of one request; None = the header was not sent.

    ETags are in their quoted form (`"0x8D..."`), `ANY` stands for `*`; times are ticks of whole
    seconds; `if_tags` is the raw expression.

    Raises: InvalidHeaderValue when `if_tags` is no expression.
    """

    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None
    if_modified_since: int | None = None
    if_unmodified_since: int | None = None
    if_tags: str | None = None

    def __post_init__(self) -> None:
        if self.if_tags is not None:
            tag_expressions.parse(self.if_tags)


NONE: Final = Conditions()


class WriteRefusals(msgspec.Struct, frozen=True):
    """The errors of a write whose conditions do not hold.

    Attributes:
        missing: nothing is there to be changed.
        existing: `If-None-Match: *` was sent, and something is there.
        unmet: any other condition (TargetConditionNotMet for a copy's destination).
    """

    missing: ErrorCode
    existing: ErrorCode
    unmet: ErrorCode = errors.CONDITION_NOT_MET


class ContainerConditions(enum.Enum):
    NONE = "none"
    MODIFIED_SINCE = "If-Modified-Since"
    DATES = "If-Modified-Since and If-Unmodified-Since"


def require_read_combination(conditions: Conditions, version: str) -> None:
    """Refuse invalid combinations of a read's conditions before anything is read.

    Reads had the rules of writes before 2013-08-15. `If-None-Match: *` was ignored before
    2016-05-31.
    """
    if version < READ_RULES_SINCE:
        require_write_combination(conditions)
    elif conditions.if_none_match == ANY and version >= NONE_MATCH_ANY_FAILS_SINCE:
        raise StorageError(errors.UNSATISFIABLE_CONDITION)


def require_write_combination(conditions: Conditions) -> None:
    """Refuse invalid combinations of a write's conditions. At most If-Match with
    If-Unmodified-Since, or If-None-Match with If-Modified-Since, or a single one may be given, with
    one ETag in each."""
    positive = conditions.if_match is not None or conditions.if_unmodified_since is not None
    negative = conditions.if_none_match is not None or conditions.if_modified_since is not None
    lists = (conditions.if_match, conditions.if_none_match)
    if (positive and negative) or any(etags and len(etags) > 1 for etags in lists):
        raise StorageError(errors.MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED)


def check_read(
    conditions: Conditions,
    etag: Etag,
    modified: int,
    version: str,
    tags: Mapping[str, str] = _NO_TAGS,
) -> None:
    """Check the conditions of a read of an existing resource.

    Arguments:
        modified: Last-Modified, in ticks; compared in whole seconds.
        version: x-ms-version of the request.

    Raises: 412 ConditionNotMet, 304 ConditionNotMet (with ETag and Last-Modified), and those of
        `require_read_combination`.
    """
    if conditions is NONE:
        return
    require_read_combination(conditions, version)
    positive = _positive_old if version < READ_RULES_SINCE else _positive
    if not positive(conditions, etag, modified) or not _tagged(conditions, tags):
        raise StorageError(errors.CONDITION_NOT_MET)
    if not _changed(conditions, etag, modified, version):
        raise not_modified(etag, modified)


def not_modified(etag: Etag, modified: int) -> StorageError:
    """304 must have these headers."""
    headers = (("ETag", etag_text(etag)), ("Last-Modified", rfc1123(modified)))
    return StorageError(errors.NOT_MODIFIED, headers=headers)


def check_write(
    conditions: Conditions,
    exists: bool,
    etag: Etag,
    modified: int,
    creates: bool,
    tags: Mapping[str, str],
    refusals: WriteRefusals,
) -> None:
    """Check the conditions of a write.

    Arguments:
        exists: whether a committed blob exists; `etag`, `modified` and `tags` are then its own.
        creates: whether the operation would create the blob (Put Blob, Put Block List, Copy).
        refusals: the errors of this kind of write; for tags it is ConditionNotMet in every write.
    """
    if not exists and not creates:
        raise StorageError(refusals.missing)
    if conditions is NONE:
        return
    require_write_combination(conditions)
    if not exists:
        met = conditions.if_match is None
    elif conditions.if_none_match == ANY:
        # Only a creation can violate `If-None-Match: *`: the service ignores the asterisk in other
        # writes.
        if creates:
            raise StorageError(refusals.existing)
        met = True
    else:
        met = _is_first_met(conditions, etag, modified)
    if not met:
        raise StorageError(refusals.unmet)
    _require_tagged(conditions, tags)


def check_source(
    conditions: Conditions,
    etag: Etag,
    modified: int,
    tags: Mapping[str, str] = _NO_TAGS,
) -> None:
    """Check the conditions on the existing source of a copy, with the pair rules of writes."""
    if conditions is NONE:
        return
    require_write_combination(conditions)
    if not _is_first_met(conditions, etag, modified):
        raise StorageError(copy_errors.SOURCE_CONDITION_NOT_MET)
    _require_tagged(conditions, tags)


def check_read_source(
    conditions: Conditions,
    etag: Etag,
    modified: int,
    tags: Mapping[str, str] = _NO_TAGS,
) -> None:
    """Check the conditions on the existing source of a From URL operation, with the rules of reads.

    Raises: CannotVerifyCopySource, with the status that a read answers, 412 or 304. It carries the
        read's status and code in its headers.
    """
    if conditions is NONE:
        return
    if not _positive(conditions, etag, modified) or not _tagged(conditions, tags):
        raise source_unmet(copy_errors.COPY_SOURCE_CONDITION_NOT_MET)
    if not _changed(conditions, etag, modified, NONE_MATCH_ANY_FAILS_SINCE):
        raise source_unmet(copy_errors.COPY_SOURCE_NOT_MODIFIED)


def source_unmet(row: ErrorCode) -> StorageError:
    return StorageError(
        row,
        headers=(
            ("x-ms-copy-source-status-code", str(row.status)),
            ("x-ms-copy-source-error-code", errors.CONDITION_NOT_MET.code),
        ),
    )


def require_container_conditions(conditions: Conditions, accepted: ContainerConditions) -> None:
    """Refuse conditions that the operation does not accept; both dates at once are refused too."""
    since, until = conditions.if_modified_since, conditions.if_unmodified_since
    refused = (
        conditions.if_match is not None
        or conditions.if_none_match is not None
        or conditions.if_tags is not None
        or (since is not None and accepted is ContainerConditions.NONE)
        or (until is not None and accepted is not ContainerConditions.DATES)
    )
    if refused:
        raise StorageError(errors.CONDITION_HEADERS_NOT_SUPPORTED)
    require_write_combination(conditions)


def check_container(conditions: Conditions, modified: int, accepted: ContainerConditions) -> None:
    """A waiting read, which accepts ETags, uses `check_read` instead."""
    if conditions is NONE:
        return
    require_container_conditions(conditions, accepted)
    if not _is_first_met(conditions, 0, modified):
        raise StorageError(errors.CONDITION_NOT_MET)


def _listed(etags: tuple[str, ...], etag: Etag) -> bool:
    return etags == ANY or etag_text(etag) in etags


def modified_since(modified: int, since: int) -> bool:
    """Headers have whole seconds, so only these count."""
    return modified // TICKS_PER_S > since // TICKS_PER_S


def _positive(conditions: Conditions, etag: Etag, modified: int) -> bool:
    etags, until = conditions.if_match, conditions.if_unmodified_since
    if etags is not None and not _listed(etags, etag):
        return False
    return until is None or not modified_since(modified, until)


def _positive_old(conditions: Conditions, etag: Etag, modified: int) -> bool:
    if conditions.if_match is not None:
        return _listed(conditions.if_match, etag)
    return _positive(conditions, etag, modified)


def _changed(conditions: Conditions, etag: Etag, modified: int, version: str) -> bool:
    etags, since = conditions.if_none_match, conditions.if_modified_since
    if etags == ANY and version < NONE_MATCH_ANY_FAILS_SINCE:
        etags = None
    if etags is None:
        return since is None or modified_since(modified, since)
    if not _listed(etags, etag):
        return True
    # One met condition is enough, except by the old rules, where only the ETag counts.
    return version >= READ_RULES_SINCE and since is not None and modified_since(modified, since)


def _is_first_met(conditions: Conditions, etag: Etag, modified: int) -> bool:
    if conditions.if_match is not None:
        return _listed(conditions.if_match, etag)
    if conditions.if_none_match is not None:
        return not _listed(conditions.if_none_match, etag)
    since, until = conditions.if_modified_since, conditions.if_unmodified_since
    if since is not None:
        return modified_since(modified, since)
    return until is None or not modified_since(modified, until)


def _require_tagged(conditions: Conditions, tags: Mapping[str, str]) -> None:
    if not _tagged(conditions, tags):
        raise StorageError(errors.CONDITION_NOT_MET)


def _tagged(conditions: Conditions, tags: Mapping[str, str]) -> bool:
    text = conditions.if_tags
    return text is None or tag_expressions.matches(tag_expressions.parse(text), tags)
