"""Opening the source of a copy, on this server or another, also again after a restart.

Lives here: the way from a URL, or from a stored copy order, to an open source. Source: "Copy Blob",
"Copy File", "Remarks".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strongroom.auth.request import Service
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import (
    CopySources,
    LocalSource,
    Opener,
    OpenLocal,
    OpenSource,
    SourceRequest,
    cannot_read,
)
from strongroom.services.core.runner import Services
from strongroom.store.core.records import CopyOrder
from strongroom.values import Metadata

_STATUS: Final = "x-ms-copy-source-status-code"
# The errors that every operation that reads a source may answer. ServerBusy is temporary: another
# gateway serves the share of the source. InternalError is that gateway's word for damaged data.
_PASSED_ON: Final = (
    copy_errors.CANNOT_VERIFY_COPY_SOURCE,
    copy_errors.SOURCE_CONDITION_NOT_MET,
    errors.SERVER_BUSY,
    errors.INTERNAL_ERROR,
)


async def open_named(
    services: Services, call: Call[Any], url: str, wanted: SourceRequest, own: Opener
) -> tuple[OpenSource, LocalSource | None]:
    """Return the open source, and where it is on this server; None = it is on another. `own` opens
    sources of the request's own service."""
    sources = services.held.of(CopySources)
    local = None if sources.locate is None else await sources.locate(url, call, wanted)
    if local is None:
        return await sources.open_remote(url, wanted), None
    return await _open_local(services, sources.openers, local, wanted, own), local


async def _open_local(
    services: Services,
    openers: Mapping[Service, OpenLocal],
    source: LocalSource,
    wanted: SourceRequest,
    own: Opener,
) -> OpenSource:
    if source.service is own.service:
        return await own.open(services, source, wanted)
    other = openers.get(source.service)
    if other is None:
        text = f"This server does not copy from its {source.service.value} service."
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text)
    try:
        return await other(services, source, wanted)
    except StorageError as refusal:
        if refusal.row in _PASSED_ON or any(name == _STATUS for name, _ in refusal.headers):
            raise
        # An error that only the source's service answers, such as a file that is locked over SMB.
        row = copy_errors.CANNOT_VERIFY_COPY_SOURCE
        raise cannot_read(row, refusal.message, refusal.row.status, refusal.row.code) from None


def copy_order(
    url: str,
    local: LocalSource | None,
    source: OpenSource,
    metadata: Metadata | None,
    destination: str,
) -> CopyOrder:
    """Return the copy order from which `reopen_source` opens this source again. `local` None = it
    is on another server. `metadata` is the destination's; None = the source's."""
    if local is None:
        return CopyOrder(url=url, etag=source.etag, metadata=metadata, destination=destination)
    return CopyOrder(
        account=local.account,
        container=local.container,
        generation=local.generation,
        blob=local.blob,
        snapshot=local.snapshot,
        version=local.version,
        etag=source.etag,
        metadata=metadata,
        destination=destination,
        service=local.service.value,
        trailing_dots=local.trailing_dots,
    )


async def reopen_source(services: Services, order: CopyOrder, own: Opener) -> OpenSource:
    """Refused with SourceConditionNotMet when the source has changed since."""
    etags = None if order.etag is None else (order.etag,)
    wanted = SourceRequest(conditional.NONE if etags is None else Conditions(if_match=etags))
    sources = services.held.of(CopySources)
    if order.url:
        return await sources.open_remote(order.url, wanted)
    source = LocalSource(
        order.account,
        order.container,
        order.generation,
        order.blob,
        snapshot=order.snapshot,
        version=order.version,
        service=Service(order.service),
        trailing_dots=order.trailing_dots,
    )
    return await _open_local(services, sources.openers, source, wanted, own)
