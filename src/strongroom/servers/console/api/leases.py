"""`GET leases`: the state of a lease, and how long it lasts at most from now on.

The rules of Get Blob Properties and Get Container Properties decide who may read it. The public
protocol tells the state without the time. A reader may know both: what can be done when a lease
ends needs a right to write. The lease's id is never told.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec

from strongroom.semantics.core import lease as leases
from strongroom.servers.console.api.documents import LeaseTime
from strongroom.servers.console.api.endpoints import ApiRequest
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.requests import admission
from strongroom.servers.requests.admission import DEFAULT_VERSION, ServiceContext
from strongroom.services.blob.blobs import get_properties
from strongroom.services.blob.containers.containers import get_container
from strongroom.values import TICKS_PER_S, Lease
from strongroom.wire.core.http import Headers, Request

_HEADERS: Final = Headers([("x-ms-version", DEFAULT_VERSION)])


class LeaseTimes(msgspec.Struct, frozen=True):
    """Tells the time of leases.

    Attributes:
        context: of the Blob service's own port.
    """

    context: ServiceContext

    async def answer(self, asked: ApiRequest) -> LeaseTime:
        """Of a blob, or of a container if no blob is named. Raises StorageError as Get Blob
        Properties does."""
        parsed = admission.read(self.context, _properties_request(asked))
        # The same rights as those of the public operation.
        _, call = await admission.admit(self.context, parsed, asked.known.claim)
        if "blob" in asked.query:
            blob = await get_properties(self.context.services, call)
            return _time_of(blob.blob.lease, blob.now)
        container = await get_container(self.context.services, call)
        return _time_of(container.record.lease, container.now)


def _properties_request(asked: ApiRequest) -> Request:
    """Return the request that would read the same properties. Raises: ApiRefusal."""
    container, blob = asked.query.get("container"), asked.query.get("blob")
    if not container or blob == "":
        raise ApiRefusal(400, "InvalidQuery", "Name a container, and a blob if you mean one.")
    path = "".join(f"/{quote(name, safe='')}" for name in (asked.known.account, container))
    path += "?restype=container" if blob is None else f"/{quote(blob, safe='')}"
    request = asked.request
    return Request("HEAD", path, _HEADERS, request.body, request.peer, request.tls)


def _time_of(lease: Lease | None, now: int) -> LeaseTime:
    ends = leases.next_timed_change(lease, now)
    return LeaseTime(
        state=leases.state(lease, now).value,
        left_s=None if ends is None else (ends - now) / TICKS_PER_S,
    )
