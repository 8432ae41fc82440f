"""Declarations: operations on messages, in the order of the Azure reference.

Source: "Operations on messages" of the REST reference; docs/operations/queue.md, table "Messages".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import queue as queue_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.operations.queue import queue_fields as fields
from strongroom.operations.queue import queue_returned as give
from strongroom.semantics.queue.messages import STALE_RECEIPT
from strongroom.services.core.calls import UNGUARDED, UNGUARDED_FREEING, ConditionUse, Rule
from strongroom.services.queue import messages, queues, retrievals
from strongroom.values import Purpose
from strongroom.wire.queue.queue_messages import read_message, read_optional_message

_BODY_BYTES_MAX: Final = limits.MESSAGE_BODY_BYTES_MAX

PUT_MESSAGE: Final = Operation(
    name="Put Message",
    id="queue_send_message",
    methods=("POST",),
    resource=Resource.MESSAGES,
    permission=permissions.MESSAGE_PUT,
    rule=UNGUARDED,
    input=messages.PutMessage,
    accepts=(fields.PUT_VISIBILITY, fields.TTL),
    body=BodyKind("text", read_message, _BODY_BYTES_MAX),
    success=201,
    returns=(XML,),
    content=give.put_message,
    run=messages.put_message,
)

PEEK_MESSAGES: Final = Operation(
    name="Peek Messages",
    id="queue_peek_messages",
    methods=("GET",),
    resource=Resource.MESSAGES,
    when=(When("?peekonly", "true"),),
    permission=permissions.MESSAGE_PEEK,
    rule=UNGUARDED,
    input=retrievals.PeekMessages,
    accepts=(fields.COUNT,),
    returns=(XML,),
    content=give.peeked_messages,
    run=retrievals.peek_messages,
)

GET_MESSAGES: Final = Operation(
    name="Get Messages",
    id="queue_receive_messages",
    methods=("GET",),
    resource=Resource.MESSAGES,
    permission=permissions.MESSAGE_GET,
    rule=Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.UPKEEP),
    waits=True,
    input=retrievals.GetMessages,
    accepts=(fields.COUNT, fields.GET_VISIBILITY),
    returns=(XML,),
    content=give.got_messages,
    run=retrievals.get_messages,
)

CLEAR_MESSAGES: Final = Operation(
    name="Clear Messages",
    id="queue_clear",
    methods=("DELETE",),
    resource=Resource.MESSAGES,
    permission=permissions.MESSAGES_CLEAR,
    rule=UNGUARDED_FREEING,
    accepts=(fields.NO_RECEIPT,),
    success=204,
    run=queues.clear_messages,
)

DELETE_MESSAGE: Final = Operation(
    name="Delete Message",
    id="queue_delete_message",
    methods=("DELETE",),
    resource=Resource.MESSAGE,
    permission=permissions.MESSAGE_DELETE,
    rule=UNGUARDED_FREEING,
    input=messages.DeleteMessage,
    accepts=(fields.RECEIPT,),
    success=204,
    fails=(queue_errors.MESSAGE_NOT_FOUND, STALE_RECEIPT),
    run=messages.delete_message,
)

UPDATE_MESSAGE: Final = Operation(
    name="Update Message",
    id="queue_update_message",
    methods=("PUT",),
    resource=Resource.MESSAGE,
    permission=permissions.MESSAGE_UPDATE,
    rule=UNGUARDED,
    input=messages.UpdateMessage,
    accepts=(fields.RECEIPT, fields.UPDATE_VISIBILITY),
    body=BodyKind("text", read_optional_message, _BODY_BYTES_MAX),
    success=204,
    returns=(give.RECEIPT, give.NEXT_VISIBLE),
    fails=(queue_errors.MESSAGE_NOT_FOUND, STALE_RECEIPT),
    run=messages.update_message,
)

OPERATIONS: Final = (
    PUT_MESSAGE,
    PEEK_MESSAGES,
    GET_MESSAGES,
    CLEAR_MESSAGES,
    DELETE_MESSAGE,
    UPDATE_MESSAGE,
)
