"""The fields of the operations on tags: the query, the marker, the document of Set Blob Tags.

Source: parameters and bodies of "Find Blobs by Tags", "Set Blob Tags".
"""

from __future__ import annotations

from typing import Final

from strongroom.operations.core.fields import parameter
from strongroom.operations.core.listing_fields import includes
from strongroom.semantics.blob import tag_queries
from strongroom.semantics.blob.tags import check
from strongroom.services.blob.tags import find_blobs
from strongroom.values import Metadata
from strongroom.wire.blob.tags import read_tags


def tags(body: bytes) -> Metadata:
    """Parse and check the tags in an XML document."""
    return check(read_tags(body))


WHERE: Final = parameter(
    "query", tag_queries.PARAMETER, lambda _, value: tag_queries.parse(value), required=True
)
WHERE_HERE: Final = parameter(
    "query", tag_queries.PARAMETER, lambda _, value: tag_queries.parse_here(value), required=True
)
MARKER: Final = parameter(
    "start",
    "marker",
    lambda _, value: tag_queries.decode_marker(value),
    default=tag_queries.START,
)
INCLUDES: Final = includes(find_blobs.INCLUDES)
