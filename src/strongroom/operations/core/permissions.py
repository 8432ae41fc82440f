"""The permissions that operations need, named once: the rows of the SAS permission tables.

Source: "Create a service SAS", "Create an account SAS", permission tables; auth.md sections 6.1,
6.2 and 7.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.authorize import Permission
from strongroom.auth.request import Service
from strongroom.auth.sas import ACCOUNT_LETTERS, PERMISSION_LETTERS
from strongroom.values import PublicAccess

READ: Final = Permission(("o", ("r",)), ("r",), PublicAccess.BLOB, actions=("blobs/read",))
WRITE: Final = Permission(("o", ("w",)), ("w",), actions=("blobs/write",))
CREATE: Final = Permission(
    ("o", ("c", "w")), ("c", "w"), actions=("blobs/write", "blobs/add/action")
)
CREATE_OF_BLOCKS: Final = Permission(("o", ("c", "w")), ("c", "w"), actions=("blobs/write",))
APPEND: Final = Permission(
    ("o", ("a", "w")), ("a", "w"), actions=("blobs/write", "blobs/add/action")
)
DELETE: Final = Permission(("o", ("d",)), ("d",), actions=("blobs/delete",))
DELETE_VERSION: Final = Permission(
    ("o", ("x",)), ("x",), actions=("blobs/deleteBlobVersion/action",)
)
DELETE_PERMANENTLY: Final = Permission(
    ("o", ("y",)), ("y",), actions=("blobs/permanentDelete/action",)
)
BREAK_LEASE: Final = Permission(
    ("o", ("w", "d")),
    ("w", "d"),
    letters_since=(("d", "2017-07-29"),),
    actions=("blobs/write",),
)
LIST: Final = Permission(("c", ("l",)), ("l",), PublicAccess.CONTAINER, actions=("blobs/read",))
GET_TAGS: Final = Permission(("o", ("t",)), ("t",), actions=("blobs/tags/read",))
SET_TAGS: Final = Permission(("o", ("t",)), ("t",), actions=("blobs/tags/write",))
PROTECT: Final = Permission(
    ("o", ("i",)), ("i",), actions=("blobs/immutableStorage/runAsSuperUser/action",)
)
FIND: Final = Permission(("s", ("f",)), actions=("blobs/filter/action",))
FIND_HERE: Final = Permission(("c", ("f",)), ("f",), actions=("blobs/filter/action",))

# A role applies in its own service only, so the same row serves containers and queues.
CONTAINER_READ: Final = Permission(
    ("c", ("r",)), None, PublicAccess.CONTAINER, actions=("containers/read",)
)
CONTAINER_WRITE: Final = Permission(("c", ("w",)), actions=("containers/write", "queues/write"))
CONTAINER_CREATE: Final = Permission(
    ("c", ("c", "w")), actions=("containers/write", "queues/write")
)
CONTAINER_DELETE: Final = Permission(("c", ("d",)), actions=("containers/delete", "queues/delete"))
CONTAINER_BREAK: Final = Permission(
    ("c", ("w", "d")), letters_since=(("d", "2017-07-29"),), actions=("containers/write",)
)
INFORMATION: Final = Permission(("sco", ("r",)), actions=("containers/read",))
INFORMATION_BELOW: Final = Permission(("sco", ("r",)), ("r",), actions=("containers/read",))
GET_ACL: Final = Permission(
    no_sas=True,
    actions=("containers/getAcl/action", "queues/getAcl/action", "tables/getAcl/action"),
)
SET_ACL: Final = Permission(
    no_sas=True,
    actions=("containers/setAcl/action", "queues/setAcl/action", "tables/setAcl/action"),
)
SHARE_ACL: Final = Permission(no_sas=True)

QUEUE_READ: Final = Permission(("c", ("r",)), ("r",), actions=("queues/read",))
MESSAGE_PUT: Final = Permission(
    ("o", ("a",)), ("a",), actions=("messages/add/action", "messages/write")
)
MESSAGE_GET: Final = Permission(
    ("o", ("p",)),
    ("p",),
    actions=("messages/process/action", "messages/read messages/delete"),
)
MESSAGE_DELETE: Final = Permission(
    ("o", ("p",)), ("p",), actions=("messages/process/action", "messages/delete")
)
MESSAGE_PEEK: Final = Permission(("o", ("r",)), ("r",), actions=("messages/read",))
MESSAGE_UPDATE: Final = Permission(("o", ("u",)), ("u",), actions=("messages/write",))
MESSAGES_CLEAR: Final = Permission(("o", ("d",)), actions=("messages/delete",))

TABLE_LIST: Final = Permission(("sc", ("l",)), actions=("tables/read",))
TABLE_CREATE: Final = Permission(("c", ("c", "w")), actions=("tables/write",))
TABLE_DELETE: Final = Permission(("c", ("d",)), actions=("tables/delete",))
ENTITY_READ: Final = Permission(("o", ("r",)), ("r",), actions=("entities/read",))
ENTITY_ADD: Final = Permission(
    ("o", ("a",)), ("a",), actions=("entities/write", "entities/add/action")
)
ENTITY_UPDATE: Final = Permission(
    ("o", ("u",)), ("u",), actions=("entities/write", "entities/update/action")
)
ENTITY_UPSERT: Final = Permission(
    ("o", ("au",)),
    ("au",),
    actions=("entities/write", "entities/add/action entities/update/action"),
)
ENTITY_DELETE: Final = Permission(("o", ("d",)), ("d",), actions=("entities/delete",))

SHARE_LIST: Final = Permission(("s", ("l",)), actions=("shares/read",))
SHARE_READ: Final = Permission(("c", ("r",)), actions=("shares/read",))
SHARE_WRITE: Final = Permission(("c", ("w",)), actions=("shares/write",))
SHARE_CREATE: Final = Permission(("c", ("c", "w")), actions=("shares/write",))
SHARE_DELETE: Final = Permission(("c", ("d",)), actions=("shares/delete",))
SHARE_BREAK: Final = Permission(("c", ("w", "d")), actions=("shares/write",))
PERMISSION_READ: Final = Permission(("c", ("r",)), ("r",), actions=("files/read",))
PERMISSION_CREATE: Final = Permission(("c", ("c", "w")), ("c", "w"), actions=("files/write",))
FILE_READ: Final = Permission(("o", ("r",)), ("r",), actions=("files/read",))
FILE_WRITE: Final = Permission(("o", ("w",)), ("w",), actions=("files/write",))
FILE_CREATE: Final = Permission(("o", ("c", "w")), ("c", "w"), actions=("files/write",))
FILE_DELETE: Final = Permission(("o", ("d",)), ("d",), actions=("files/delete",))
FILE_BREAK: Final = Permission(("o", ("w", "d")), ("w", "d"), actions=("files/write",))
FILE_LIST: Final = Permission(("c", ("l",)), ("l",), actions=("files/read",))

SERVICE_LIST: Final = Permission(("s", ("l",)), actions=("containers/read", "queues/read"))
SERVICE_READ: Final = Permission(("s", ("r",)), actions=("services/read",))
SERVICE_WRITE: Final = Permission(("s", ("w",)), actions=("services/write",))

# Each request of a batch is authorized by itself, so any token and any role may send a batch.
_ANY_ACCOUNT_SAS: Final = ("sco", tuple(ACCOUNT_LETTERS))
_ANY_BLOB_ACTION: Final = ("blobs/read", "blobs/write", "blobs/delete")
_ANY_ENTITY_ACTION: Final = ("entities/read", "entities/write", "entities/delete")
ANY_OF_ACCOUNT: Final = Permission(_ANY_ACCOUNT_SAS, actions=_ANY_BLOB_ACTION, anywhere=True)
ANY_OF_BLOBS: Final = Permission(
    _ANY_ACCOUNT_SAS,
    tuple(PERMISSION_LETTERS[Service.BLOB]),
    actions=_ANY_BLOB_ACTION,
    anywhere=True,
)
ANY_OF_ENTITIES: Final = Permission(
    _ANY_ACCOUNT_SAS,
    tuple(PERMISSION_LETTERS[Service.TABLE]),
    actions=_ANY_ENTITY_ACTION,
    anywhere=True,
)

DELEGATE: Final = Permission(actions=("generateUserDelegationKey/action",), bearer_only=True)
NOBODY: Final = PublicAccess.NONE
"""The public access of a container that does not exist."""
ANYONE: Final = Permission(public=PublicAccess.BLOB)
