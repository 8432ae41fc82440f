"""Declarations: operations on queues, in the order of the Azure reference.

Source: "Operations on the account (Queue Storage)" and "Operations on queues" of the REST
reference; docs/operations/queue.md, tables "Service" and "Queues".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import queue as queue_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML, metadata
from strongroom.operations.core.delegation import get_user_delegation_key
from strongroom.operations.core.fields import METADATA
from strongroom.operations.core.listing_fields import MAX_RESULTS, PREFIX
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.operations.queue import queue_fields
from strongroom.operations.queue import queue_returned as give
from strongroom.services.core.calls import UNGUARDED, UNGUARDED_FREEING
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.queue import list_queues, queues
from strongroom.wire.core.signed_identifiers import read_queue_identifiers

LIST_QUEUES: Final = Operation(
    name="List Queues",
    id="service_get_queues",
    methods=("GET",),
    resource=Resource.SERVICE,
    comp="list",
    permission=permissions.SERVICE_LIST,
    rule=UNGUARDED,
    input=list_queues.ListQueues,
    accepts=(PREFIX, queue_fields.MARKER, MAX_RESULTS, queue_fields.QUEUE_INCLUDES),
    returns=(XML,),
    content=give.queues,
    fails=(queue_errors.INVALID_MARKER,),
    run=list_queues.list_queues,
)

GET_USER_DELEGATION_KEY: Final = get_user_delegation_key(UNGUARDED)

CREATE_QUEUE: Final = Operation(
    name="Create Queue",
    id="queue_create",
    methods=("PUT",),
    resource=Resource.QUEUE,
    permission=permissions.CONTAINER_CREATE,
    rule=UNGUARDED,
    input=queues.CreateQueue,
    accepts=(METADATA,),
    success=give.created_status,
    fails=(queue_errors.QUEUE_ALREADY_EXISTS,),
    run=queues.create_queue,
)

DELETE_QUEUE: Final = Operation(
    name="Delete Queue",
    id="queue_delete",
    methods=("DELETE",),
    resource=Resource.QUEUE,
    permission=permissions.CONTAINER_DELETE,
    rule=UNGUARDED_FREEING,
    success=204,
    run=queues.delete_queue,
)

GET_QUEUE_METADATA: Final = Operation(
    name="Get Queue Metadata",
    id="queue_get_properties",
    methods=("GET", "HEAD"),
    resource=Resource.QUEUE,
    comp="metadata",
    permission=permissions.QUEUE_READ,
    rule=UNGUARDED,
    returns=(give.COUNT,),
    extra_headers=metadata,
    run=queues.count_queue,
)

SET_QUEUE_METADATA: Final = Operation(
    name="Set Queue Metadata",
    id="queue_set_metadata",
    methods=("PUT",),
    resource=Resource.QUEUE,
    comp="metadata",
    permission=permissions.CONTAINER_WRITE,
    rule=UNGUARDED,
    input=SetPlaceMetadata,
    accepts=(METADATA,),
    success=204,
    run=queues.set_metadata,
)

GET_QUEUE_ACL: Final = Operation(
    name="Get Queue ACL",
    id="queue_get_access_policy",
    methods=("GET", "HEAD"),
    resource=Resource.QUEUE,
    comp="acl",
    permission=permissions.GET_ACL,
    rule=UNGUARDED,
    returns=(XML,),
    content=give.acl,
    run=queues.get_queue,
)

SET_QUEUE_ACL: Final = Operation(
    name="Set Queue ACL",
    id="queue_set_access_policy",
    methods=("PUT",),
    resource=Resource.QUEUE,
    comp="acl",
    permission=permissions.SET_ACL,
    rule=UNGUARDED,
    input=queues.SetQueueAcl,
    body=BodyKind("policies", read_queue_identifiers, limits.XML_BODY_BYTES_MAX),
    success=204,
    run=queues.set_acl,
)

OPERATIONS: Final = (
    LIST_QUEUES,
    GET_USER_DELEGATION_KEY,
    CREATE_QUEUE,
    DELETE_QUEUE,
    GET_QUEUE_METADATA,
    SET_QUEUE_METADATA,
    GET_QUEUE_ACL,
    SET_QUEUE_ACL,
)
