"""Values of Azurite's records as values of this server, or the reason why they are none.

Lives here: pure functions of documents. Each applies the rules that the same value must pass in a
request, and raises NotConvertible for one that does not.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from strongroom.auth.accounts import Account, AccountsError
from strongroom.errors.core import StorageError
from strongroom.importing import documents
from strongroom.importing.documents import (
    BlobDocument,
    BlobPropertiesDocument,
    IdentifierDocument,
    LeaseDocument,
)
from strongroom.limits import LEASE_DURATION_S
from strongroom.semantics.blob import pages, tags, tiers
from strongroom.semantics.core import names
from strongroom.semantics.core.copies import Copy, CopyStatus
from strongroom.semantics.core.lease import INFINITE
from strongroom.semantics.table import edm
from strongroom.service_properties import (
    CorsRule,
    Logging,
    Metrics,
    RetentionPolicy,
    ServiceProperties,
    StaticWebsite,
)
from strongroom.values import (
    LATEST_TICKS,
    TICKS_PER_S,
    UNIX_EPOCH_TICKS,
    AccessPolicy,
    BlobKind,
    ContentProperties,
    Lease,
    Metadata,
    PublicAccess,
)
from strongroom.wire.core.service_properties_xml import (
    read_service_properties,
    read_shared_properties,
    write_service_properties,
)
from strongroom.wire.core.signed_identifiers import (
    read_queue_identifiers,
    read_signed_identifiers,
    write_signed_identifiers,
)

_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_HEADER: Final = re.compile(r"[\t\x20-\x7e\xa0-\xff]{0,8192}")
# Characters that need no escape, neither in a header nor in XML.
_ETAG: Final = re.compile(r'"?([0-9A-Za-z._:+/=-]{1,100})"?')
_KINDS: Final = {kind.type_text: kind for kind in BlobKind}
_MD5_BYTES: Final = 16
_BYTES_MAX: Final = 2**63 - 1
_ENDED: Final = ("broken", "expired")
_TICKS_PER_MS: Final = TICKS_PER_S // 1000


class NotConvertible(Exception):
    """A value that this server cannot store as it is; the text says which, and why."""


def refusal(error: Exception) -> str:
    """Return the reason why a value is refused, as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def check_account(name: str) -> None:
    try:
        Account(name, (b"any key",))
    except AccountsError as error:
        raise NotConvertible(refusal(error)) from None


def time(text: str | None, what: str) -> int:
    """Return the ticks of a time. Raises NotConvertible."""
    if text is None:
        raise NotConvertible(f"it has no {what}")
    try:
        return edm.parse_time(text)
    except (edm.NotOfType, edm.OutOfRange) as error:
        raise NotConvertible(f"its {what} {text[:40]!r} is no time: {refusal(error)}") from None


def time_ms(milliseconds: int, what: str) -> int:
    """Return the ticks of milliseconds since 1970. Raises NotConvertible."""
    ticks = UNIX_EPOCH_TICKS + milliseconds * _TICKS_PER_MS
    if not milliseconds >= 0 or ticks > LATEST_TICKS:
        raise NotConvertible(f"its {what} {milliseconds} is no time in milliseconds since 1970")
    return ticks


def etag(text: str | None) -> str | None:
    """Return an ETag with its quotes; None for one that cannot be kept."""
    match = _ETAG.fullmatch(text or "")
    return None if match is None else f'"{match[1]}"'


def etag_loss(text: str | None) -> str:
    return f"its ETag {(text or '')[:80]!r} cannot be kept, so it gets another one"


def metadata(pairs: Mapping[str, str] | None) -> Metadata:
    try:
        return names.check_metadata((pairs or {}).items())
    except StorageError as error:
        raise NotConvertible(f"its metadata is refused: {refusal(error)}") from None


def policies(
    identifiers: tuple[IdentifierDocument, ...] | None, is_queue: bool = False
) -> tuple[AccessPolicy, ...]:
    kept = tuple(
        AccessPolicy(
            one.id,
            one.access_policy.start or None,
            one.access_policy.expiry or None,
            one.access_policy.permission or None,
        )
        for one in identifiers or ()
    )
    if not kept:
        return ()
    read = read_queue_identifiers if is_queue else read_signed_identifiers
    try:
        if [one.id for one in read(write_signed_identifiers(kept))] != [one.id for one in kept]:
            raise ValueError("an id has characters that XML does not permit")
    except (StorageError, ValueError) as error:
        reason = f"its stored access policies are refused: {refusal(error)}"
        raise NotConvertible(reason) from None
    return kept


def public_access(text: str | None) -> PublicAccess:
    try:
        return PublicAccess(text or "")
    except ValueError:
        raise NotConvertible(f"{(text or '')[:40]!r} is no access level") from None


def lease(document: LeaseDocument, state: str | None, now: int) -> Lease | None:
    """Return the lease, also one that has ended; its id still counts. Raises NotConvertible for
    one that still runs."""
    lease_id = document.lease_id or ""
    if state in _ENDED:
        return _ended(state, lease_id.lower(), now) if _GUID.fullmatch(lease_id) else None
    if state not in ("leased", "breaking"):
        return None
    if not _GUID.fullmatch(lease_id):
        raise NotConvertible(f"the id {lease_id[:80]!r} of its lease is no GUID")
    if state == "breaking":
        breaks = time(document.lease_break_time, "end of the lease's break")
        return Lease(lease_id.lower(), INFINITE, breaks=breaks)
    if document.lease_expire_time is None:
        return Lease(lease_id.lower(), INFINITE)
    expires = time(document.lease_expire_time, "end of the lease")
    duration_s, (least, most) = document.lease_duration_seconds or 0, LEASE_DURATION_S
    if not least <= duration_s <= most or expires > now + most * TICKS_PER_S:
        until = document.lease_expire_time[:40]
        raise NotConvertible(f"its lease of {duration_s} s until {until} is longer than {most} s")
    return Lease(lease_id.lower(), duration_s, expires)


def _ended(state: str | None, lease_id: str, now: int) -> Lease:
    """Return a lease that has ended; Azurite has forgotten when."""
    if state == "broken":
        return Lease(lease_id, INFINITE, breaks=now)
    return Lease(lease_id, LEASE_DURATION_S[0], expires=now)


def kind(blob: BlobDocument) -> BlobKind:
    known = _KINDS.get(blob.properties.blob_type)
    if known is None:
        raise NotConvertible(f"{blob.properties.blob_type[:40]!r} is no type of blob")
    return known


def content_properties(document: BlobPropertiesDocument) -> ContentProperties:
    md5 = _md5(document.content_md5)
    is_md5 = len(md5) == _MD5_BYTES
    other = base64.b64encode(md5).decode() if md5 and not is_md5 else None
    return ContentProperties(
        content_type=_header(document.content_type, "content type"),
        encoding=_header(document.content_encoding, "content encoding"),
        language=_header(document.content_language, "content language"),
        md5=md5 if is_md5 else None,
        cache_control=_header(document.cache_control, "cache control"),
        disposition=_header(document.content_disposition, "content disposition"),
        other_md5=other,
    )


def _header(text: str | None, what: str) -> str | None:
    if text and not _HEADER.fullmatch(text):
        raise NotConvertible(f"its {what} cannot be a header")
    return text or None


def _md5(value: dict[str, object] | str | None) -> bytes:
    if not value:
        return b""
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
        numbers = value["data"] if "data" in value else [value[str(i)] for i in range(len(value))]
        if not isinstance(numbers, list) or len(numbers) > 2 * _MD5_BYTES:
            raise ValueError
        return bytes(numbers)
    except (KeyError, ValueError, TypeError, binascii.Error):
        raise NotConvertible("its Content-MD5 is no list of bytes") from None


def blob_tags(document: documents.TagsDocument | None) -> Metadata:
    pairs = [(tag.key, tag.value) for tag in (() if document is None else document.blob_tag_set)]
    try:
        return tags.check(pairs)
    except StorageError as error:
        raise NotConvertible(f"its tags are refused: {refusal(error)}") from None


def tier(document: BlobPropertiesDocument, of: BlobKind) -> tuple[str | None, int]:
    """Return the tier that the blob was given, and when; (None, 0) for an inferred one. Raises
    NotConvertible."""
    if document.access_tier is None or document.access_tier_inferred or of is BlobKind.APPEND:
        return None, 0
    try:
        named = tiers.read_any_tier(tiers.HEADER, document.access_tier)
        tiers.check_given(of, named, document.content_length)
    except StorageError:
        raise NotConvertible(f"the tier {document.access_tier[:40]!r} is not known") from None
    changed = document.access_tier_change_time or document.last_modified
    return named, time(changed, "time of change of the tier")


def copy(document: BlobPropertiesDocument) -> Copy | None:
    """Return the copy that wrote the blob, if one has ended. Raises NotConvertible."""
    if document.copy_id is None or document.copy_status in (None, "pending"):
        return None
    done, _, total = (document.copy_progress or "").partition("/")
    try:
        status = CopyStatus(document.copy_status)
        numbers = int(done), int(total)
    except ValueError:
        raise NotConvertible("its copy's status or progress is not known") from None
    if not _GUID.fullmatch(document.copy_id) or not 0 <= min(numbers) <= max(numbers) <= _BYTES_MAX:
        raise NotConvertible("its copy's id or progress is malformed")
    return Copy(
        document.copy_id.lower(),
        status,
        _header(document.copy_source, "source of the copy") or "",
        *numbers,
        time(document.copy_completion_time, "end of the copy"),
        _header(document.copy_status_description, "description of the copy"),
    )


def block_id(name: str) -> bytes:
    try:
        decoded = base64.b64decode(name, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not 1 <= len(decoded) <= 64:
        raise NotConvertible(f"{name[:100]!r} is no id of a block")
    return decoded


def message_id(text: str) -> str:
    if not _GUID.fullmatch(text):
        raise NotConvertible("its id is no GUID")
    return text.lower()


def page_blob_size(size_bytes: int) -> int:
    try:
        return pages.check_size("contentLength", str(size_bytes), size_bytes)
    except StorageError:
        raise NotConvertible(f"{size_bytes} bytes is no length of a page blob") from None


def sequence_number(number: int) -> int:
    if not 0 <= number <= pages.SEQUENCE_MAX:
        raise NotConvertible(f"{number} is no sequence number")
    return number


def service_properties(service: documents.ServicesDocument, is_blob: bool) -> ServiceProperties:
    """Return the properties of a service. Raises NotConvertible, also for a section that only the
    Blob service has."""
    cors = None if service.cors is None else tuple(_cors(rule) for rule in service.cors)
    properties = ServiceProperties(
        logging=None if service.logging is None else _logging(service.logging),
        hour_metrics=None if service.hour_metrics is None else _metrics(service.hour_metrics),
        minute_metrics=None if service.minute_metrics is None else _metrics(service.minute_metrics),
        cors=cors,
        default_service_version=service.default_service_version,
        delete_retention=_retention(service.delete_retention_policy),
        static_website=None if service.static_website is None else _website(service.static_website),
    )
    try:
        read = read_service_properties if is_blob else read_shared_properties
        read(write_service_properties(properties))
    except (StorageError, ValueError) as error:
        raise NotConvertible(refusal(error)) from None
    return properties


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _cors(rule: documents.CorsRuleDocument) -> CorsRule:
    return CorsRule(
        _words(rule.allowed_origins),
        _words(rule.allowed_methods),
        _words(rule.allowed_headers),
        _words(rule.exposed_headers),
        rule.max_age_in_seconds,
    )


def _retention(document: documents.RetentionDocument | None) -> RetentionPolicy | None:
    if document is None:
        return None
    return RetentionPolicy(document.enabled, document.days if document.enabled else None)


def _logging(document: documents.LoggingDocument) -> Logging:
    retention = _retention(document.retention_policy) or RetentionPolicy()
    return Logging(
        document.version, document.delete_property, document.read, document.write, retention
    )


def _metrics(document: documents.MetricsDocument) -> Metrics:
    retention = _retention(document.retention_policy) or RetentionPolicy()
    with_apis = bool(document.include_apis) if document.enabled else None
    return Metrics(document.version or "1.0", document.enabled, with_apis, retention)


def _website(document: documents.WebsiteDocument) -> StaticWebsite:
    return StaticWebsite(
        document.enabled,
        document.index_document,
        document.error_document404_path,
        document.default_index_document_path,
    )
