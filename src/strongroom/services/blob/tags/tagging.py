"""Get Blob Tags and Set Blob Tags.

Lives here: the decision of the write. Source: "Get Blob Tags", "Set Blob Tags"; reference section
10.
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
    """An empty tuple clears all tags. `digests` are those that the client declared for the document
    that was `received`."""

    tags: Metadata
    received: Received | None = None
    digests: Digests = NO_DIGESTS


async def get_tags(services: Services, call: Call[Any]) -> BlobView:
    return await views.view_blob(services, call, wait=False)


async def set_tags(services: Services, call: Call[SetTags]) -> None:
    """Also on an archived blob. ETag, Last-Modified and the lease do not change."""
    await changing.change_blob(services, call, lambda state, change: _set(call, state, change))


def _set(call: Call[SetTags], state: BlobState, change: BlobChange) -> None:
    named, request = state.named, call.input
    assert named is not None
    if request.received is not None:
        intake.verify(request.digests, request.received)
    refuse_pending_copy(named)
    change.put_state(state.past, named, msgspec.structs.replace(named, tags=request.tags))
