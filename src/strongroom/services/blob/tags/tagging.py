"""Get Blob Tags and Set Blob Tags.

Lives here: the decision of the write. Must not live here: the rules of tags
(semantics/blob/tags.py), the index (store/blob/tag_index.py), searches (find_blobs.py). Source:
"Get Blob Tags", "Set Blob Tags"; reference section 10.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.decisions import changing, views
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.states.heads import refuse_pending_copy
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies.received import Received
from strongroom.values import Metadata


class SetTags(msgspec.Struct, frozen=True):
    """Input of Set Blob Tags: all tags; an empty tuple clears them.

    `digests` are those that the client declared for the document that was `received`.
    """

    tags: Metadata
    received: Received | None = None
    digests: Digests = NO_DIGESTS


async def get_tags(services: Services, call: Call[Any]) -> BlobView:
    """Get Blob Tags: return the blob, snapshot or version that is named.

    Raises: StorageError as guard_blob does.
    """
    return await views.view_blob(services, call, wait=False)


async def set_tags(services: Services, call: Call[SetTags]) -> None:
    """Set Blob Tags, also on an archived blob. ETag, Last-Modified and the lease do not change.

    Raises: StorageError Md5Mismatch, Crc64Mismatch, PendingCopyOperation, and what guard_blob
        raises.
    """
    await changing.change_blob(services, call, lambda state, change: _set(call, state, change))


def _set(call: Call[SetTags], state: BlobState, change: BlobChange) -> None:
    named, given = state.named, call.input
    assert named is not None
    if given.received is not None:
        intake.verify(given.digests, given.received)
    refuse_pending_copy(named)
    change.put_state(state.past, named, msgspec.structs.replace(named, tags=given.tags))
