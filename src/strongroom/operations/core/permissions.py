"""What the operations ask of a caller, named once: the rows of the SAS permission tables.

Must not live here: how it is judged (auth/authorize.py). Source: "Create a service SAS", "Create an
account SAS", permission tables; auth.md sections 6.1, 6.2 and 7.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.authorize import Permission
from strongroom.values import PublicAccess

READ: Final = Permission(("o", ("r",)), ("r",), PublicAccess.BLOB)
WRITE: Final = Permission(("o", ("w",)), ("w",))
CREATE: Final = Permission(("o", ("c", "w")), ("c", "w"))
DELETE: Final = Permission(("o", ("d",)), ("d",))
BREAK_LEASE: Final = Permission(("o", ("w", "d")), ("w", "d"), letters_since=(("d", "2017-07-29"),))
LIST: Final = Permission(("c", ("l",)), ("l",), PublicAccess.CONTAINER)

CONTAINER_READ: Final = Permission(("c", ("r",)), None, PublicAccess.CONTAINER)
CONTAINER_WRITE: Final = Permission(("c", ("w",)))
CONTAINER_CREATE: Final = Permission(("c", ("c", "w")))
CONTAINER_DELETE: Final = Permission(("c", ("d",)))
CONTAINER_BREAK: Final = Permission(("c", ("w", "d")), letters_since=(("d", "2017-07-29"),))
ACL: Final = Permission(key_only=True)

QUEUE_READ: Final = Permission(("c", ("r",)), ("r",))
MESSAGE_PUT: Final = Permission(("o", ("a",)), ("a",))
MESSAGE_GET: Final = Permission(("o", ("p",)), ("p",))
MESSAGE_PEEK: Final = Permission(("o", ("r",)), ("r",))
MESSAGE_UPDATE: Final = Permission(("o", ("u",)), ("u",))
MESSAGES_CLEAR: Final = Permission(("o", ("d",)))

TABLE_LIST: Final = Permission(("sc", ("l",)))
TABLE_CREATE: Final = Permission(("c", ("c", "w")))
TABLE_DELETE: Final = Permission(("c", ("d",)))
ENTITY_READ: Final = Permission(("o", ("r",)), ("r",))
ENTITY_ADD: Final = Permission(("o", ("a",)), ("a",))
ENTITY_UPDATE: Final = Permission(("o", ("u",)), ("u",))
ENTITY_UPSERT: Final = Permission(("o", ("au",)), ("au",))
ENTITY_DELETE: Final = Permission(("o", ("d",)), ("d",))

SERVICE_LIST: Final = Permission(("s", ("l",)))
SERVICE_READ: Final = Permission(("s", ("r",)))
SERVICE_WRITE: Final = Permission(("s", ("w",)))
NOBODY: Final = PublicAccess.NONE
"""Public access where there is no container."""
ANYONE: Final = Permission(public=PublicAccess.BLOB)
