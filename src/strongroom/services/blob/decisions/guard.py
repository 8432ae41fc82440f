"""The records that a request about a blob or a container names, and the check of them before every
decision: existence, type, lease, conditions.

Lives here: one check per kind of resource, which applies the operation's `Rule` in that order.
Source: conditions.md section 10 (order), leases.md sections 4 and 5.
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.engines.base import Partition, Ref, ref_of
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import encryption_scopes
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.core.calls import Call, ConditionUse, Existence
from strongroom.services.core.container_conditions import CONTAINER_CONDITIONS
from strongroom.services.core.decisions import UNDECODED, ReadAll, Reads
from strongroom.services.core.places import generation_of
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.kinds import read_with
from strongroom.store.core import keys
from strongroom.store.core.keys import Past
from strongroom.store.core.records import ContainerRecord
from strongroom.values import Etag

_JUDGED_AS_READS: Final = (ConditionUse.READ, ConditionUse.TAGS, ConditionUse.BLOB_READ)


def named_past(call: Call[Any]) -> Past | None:
    """The version may be the current one."""
    target = call.target
    if target.version is not None:
        return Past(target.version, True)
    return None if target.snapshot is None else Past(target.snapshot)


def named_ref(call: Call[Any], past: Past | None) -> Ref:
    partition = keys.blob(generation_of(call), call.target.blob)
    return ref_of((partition, keys.HEAD_KEY if past is None else keys.past(past)))


def add_body(reads: Reads, partition: Partition, past: Past | None) -> ReadAll[bytes]:
    """Add the reads of the records of a body; `past` None = the head's."""
    return reads.add_all([ref_of((partition, key)) for key in read_with(past)], UNDECODED)


def guard_blob(call: Call[object], blob: BlobRecord | None, now: int) -> None:
    """Refuse a request that the blob's existence, type, lease or conditions forbid.

    Raises: StorageError BlobNotFound, InvalidBlobType, the lease errors (412), ConditionNotMet (304
        or 412), BlobAlreadyExists and the 400s of conditions.md.
    """
    rule = call.rule
    committed = blob is not None and blob.committed
    if blob is None or not committed:
        _guard_missing(call, blob)
    if rule.kind is not None and blob is not None and blob.kind is not rule.kind:
        raise StorageError(blob_errors.INVALID_BLOB_TYPE)
    lease = None if blob is None else blob.lease
    leases.guard(lease, call.terms.lease_id, rule.lease, now)
    if rule.conditions is ConditionUse.NONE or call.terms.conditions is conditional.NONE:
        return
    etag: Etag = 0
    modified, tags = 0, dict[str, str]()
    if committed and blob is not None:
        etag, modified, tags = blob.shown_etag, blob.modified, dict(blob.tags)
    if rule.conditions in _JUDGED_AS_READS:
        conditional.check_read(call.terms.conditions, etag, modified, call.caller.version, tags)
    else:
        # A leased blob with only staged blocks has no ETag. It is treated like a blob to be
        # created. A write that names the blob's lease creates nothing: it replaces that blob.
        replaces = call.terms.lease_id is not None
        creates = not committed or (rule.existence is Existence.CREATES and not replaces)
        refusals = conditional.WriteRefusals(
            blob_errors.BLOB_NOT_FOUND, blob_errors.BLOB_ALREADY_EXISTS, rule.unmet
        )
        conditional.check_write(
            call.terms.conditions, committed, etag, modified, creates, tags, refusals
        )


def scope_of_new(call: Call[object]) -> str:
    """Return the encryption scope of the blob that the request writes."""
    container = None if call.place is None else call.place.record
    if not isinstance(container, ContainerRecord):
        return call.terms.scope or ""
    if call.terms.scope is None:
        return container.scope  # the usual case
    return encryption_scopes.scope_of_new(
        call.terms.scope, container.scope, container.denies_scopes
    )


def guard_scope(call: Call[object], blob: BlobRecord | None) -> None:
    """Refuse an encryption scope that the container or the blob does not allow, and a request that
    has to name the blob's and does not. A container's default scope need not be named."""
    scope = scope_of_new(call)
    if call.terms.scope is None:
        if blob is not None and blob.committed:
            encryption_scopes.require_named(scope, blob.scope)
        return
    if call.rule.existence is Existence.COMMITTED and blob is not None:
        encryption_scopes.require_same(call.terms.scope, blob.scope)


def _guard_missing(call: Call[object], blob: BlobRecord | None) -> None:
    existence = call.rule.existence
    if existence is Existence.CREATES:
        return
    if existence is not Existence.ANY or blob is None:
        raise StorageError(blob_errors.BLOB_NOT_FOUND)


def guard_container(call: Call[object], container: ContainerRecord, now: int) -> None:
    """Refuse a request that the container's lease or the date conditions forbid."""
    leases.guard(container.lease, call.terms.lease_id, call.rule.lease, now)
    use, conditions = call.rule.conditions, call.terms.conditions
    if use is ConditionUse.NONE or conditions is conditional.NONE:
        return
    seen_only = conditions == Conditions(if_none_match=conditions.if_none_match)
    if use is ConditionUse.REFUSED and call.terms.wait_s and seen_only:
        # A read that waits for a change sends the ETag that it has seen in If-None-Match.
        conditional.check_read(
            conditions, container.shown_etag, container.modified, call.caller.version
        )
        return
    accepted = CONTAINER_CONDITIONS[use]
    conditional.check_container(conditions, container.modified, accepted)
