"""The facts about a copy's source besides its bytes, if the source is a blob of this server.

Lives here: `OpenBlob`. Source: "Copy Blob", "Remarks".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from strongroom.semantics.blob.pages import PageState
from strongroom.services.core.copies.sources import OpenSource
from strongroom.store.blob.bodies.body import Body, BodyPlace, CopyWriter
from strongroom.values import BlobKind, Metadata


class PageSource(NamedTuple):
    """The source of a page blob copy: its state, and its body, whose pages can be listed."""

    state: PageState
    place: BodyPlace
    body: Body


@dataclass(slots=True, eq=False)
class OpenBlob(OpenSource):
    """An open copy source, and the properties that the copy takes from it.

    `copy_writer`: see OpenBody. `tier` is None if the source has the account's tier, or is not a
    blob of this server. `tags` are present if they were requested. `kind` is the type of the copy;
    a source that is not a blob of this server becomes a block blob. `sealed`: the source is a
    sealed append blob. `page` is set if it is a page blob of this server.
    """

    copy_writer: CopyWriter | None = None
    tier: str | None = None
    tags: Metadata = ()
    kind: BlobKind = BlobKind.BLOCK
    sealed: bool = False
    page: PageSource | None = None


def as_blob(source: OpenSource) -> OpenBlob:
    if isinstance(source, OpenBlob):
        return source
    return OpenBlob(
        source.size_bytes,
        source.chunks,
        source.release,
        source.properties,
        source.metadata,
        source.etag,
    )
