"""Set Blob Properties and Set Blob Metadata: changes of a blob without its content.

Lives here: the two decisions. Source: "Set Blob Properties", "Set Blob Metadata"; reference section
7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.services.blob.blobs import BlobWritten
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.displaced import head_to_modify
from strongroom.services.blob.states.heads import (
    modified_head,
    refuse_archived,
    refuse_incremental,
    refuse_pending_copy,
)
from strongroom.services.blob.states.immutability import refuse_change
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.values import ContentProperties, Metadata


class SetProperties(msgspec.Struct, frozen=True):
    """All six properties, or None to leave them unchanged."""

    properties: ContentProperties | None


class SetMetadata(msgspec.Struct, frozen=True):
    """All pairs; an empty tuple clears the metadata."""

    metadata: Metadata = ()


async def set_properties(services: Services, call: Call[SetProperties]) -> BlobWritten:
    """It also removes the copy properties, and it makes no version."""
    given = call.input.properties
    changes: dict[str, Any] = {"copy": None}
    if given is not None:
        changes["properties"] = given
    return await _modify(services, call, changes, lambda head, state, change: head)


async def set_metadata(services: Services, call: Call[SetMetadata]) -> BlobWritten:
    return await _modify(services, call, {"metadata": call.input.metadata}, head_to_modify)


async def _modify(
    services: Services,
    call: Call[Any],
    changes: dict[str, Any],
    begin: Callable[[BlobRecord, BlobState, BlobChange], BlobRecord],
) -> BlobWritten:
    def decide(state: BlobState, change: BlobChange) -> BlobWritten:
        assert state.head is not None
        refuse_pending_copy(state.head)
        refuse_archived(state.head)
        refuse_incremental(state.head)
        refuse_change(state.head, state)
        head = begin(state.head, state, change)
        change.put_head(modified_head(head, change.stamp, **changes))
        number = None if head.page is None else head.page.sequence_number
        return BlobWritten(change.stamp, change.stamp, sequence_number=number, version=head.version)

    return await changing.change_blob(services, call, decide)
