"""The Queue service: its operations, and the addresses of its URLs.

Source: "Addressing Queue service resources".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.core import properties
from strongroom.operations.core.endpoint import Endpoint, ResourceAddress
from strongroom.operations.core.routes import Routes
from strongroom.operations.core.spec import Resource
from strongroom.operations.queue import message, queue
from strongroom.semantics.core import names
from strongroom.wire.core.path import UrlTarget
from strongroom.wire.core.query import Query
from strongroom.wire.core.service_properties_xml import read_shared_properties

_MESSAGES: Final = "messages"

ROUTES: Final = Routes(
    (
        properties.preflight("Queue"),
        *properties.properties("Queue", read_shared_properties),
        *queue.OPERATIONS,
        *message.OPERATIONS,
    )
)


def _address(target: UrlTarget, query: Query) -> ResourceAddress:
    """The resource of `/`, `/queue`, `/queue/messages` or `/queue/messages/{id}`."""
    if target.container is None:
        return ResourceAddress(target, Resource.SERVICE)
    if target.blob is None:
        return ResourceAddress(target, Resource.QUEUE)
    word, _, message_id = target.blob.rstrip("/").partition("/")
    if word != _MESSAGES or "/" in message_id:
        raise StorageError(errors.INVALID_URI, None, (("UriPath", target.blob[:256]),))
    named = msgspec.structs.replace(target, blob=message_id or None)
    return ResourceAddress(named, Resource.MESSAGE if message_id else Resource.MESSAGES)


def _check_names(addressed: ResourceAddress) -> None:
    if addressed.target.container is not None:
        names.check_queue(addressed.target.container)


ENDPOINT: Final = Endpoint(Service.QUEUE, ROUTES, _address, _check_names)
