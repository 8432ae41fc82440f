"""All operations of the Blob service, in the order in which a request is matched against them.

Lives here: the list. Where several operations share a URL, one with more headers comes before one
with fewer; Routes refuses a list in which one hides another.
"""

from __future__ import annotations

from typing import Final

from strongroom.operations import blob, block, container, copy, lease, service, unserved
from strongroom.operations.routes import Routes

ROUTES: Final = Routes(
    (
        *copy.FIRST,
        *unserved.FIRST,
        *copy.OPERATIONS,
        *service.OPERATIONS,
        *container.OPERATIONS,
        *lease.OPERATIONS,
        *block.OPERATIONS,
        *blob.OPERATIONS,
        *unserved.OPERATIONS,
    )
)
