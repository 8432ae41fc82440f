"""Declarations: operations on links over REST, as a share for SMB answers them.

The refusal: services/file/rest/links.py. Sources: "Create Symbolic Link", "Read Symbolic Link",
"Create Hard Link"; docs/operations/file.md.

The headers that describe the link are not read, since a share for SMB has no links.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import file as file_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Operation, Resource
from strongroom.operations.file.share_fields import share_snapshot
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.file.rest.links import refuse_link

_RULE: Final = Rule(conditions=ConditionUse.IGNORED)

CREATE_SYMBOLIC_LINK: Final = Operation(
    name="Create Symbolic Link",
    id="file_create_symbolic_link",
    methods=("PUT",),
    resource=Resource.FILE,
    restype="symboliclink",
    permission=permissions.FILE_CREATE,
    rule=_RULE,
    success=201,
    fails=(file_errors.LINKS_REFUSED,),
    run=refuse_link,
)

GET_SYMBOLIC_LINK: Final = Operation(
    name="Get Symbolic Link",
    id="file_get_symbolic_link",
    methods=("GET",),
    resource=Resource.FILE,
    restype="symboliclink",
    snapshots=share_snapshot,
    permission=permissions.FILE_READ,
    rule=_RULE,
    fails=(file_errors.LINKS_REFUSED, file_errors.SHARE_SNAPSHOT_NOT_FOUND),
    run=refuse_link,
)

CREATE_HARD_LINK: Final = Operation(
    name="Create Hard Link",
    id="file_create_hard_link",
    methods=("PUT",),
    resource=Resource.FILE,
    restype="hardlink",
    permission=permissions.FILE_CREATE,
    rule=_RULE,
    success=201,
    fails=(file_errors.LINKS_REFUSED,),
    run=refuse_link,
)

OPERATIONS: Final = (CREATE_SYMBOLIC_LINK, GET_SYMBOLIC_LINK, CREATE_HARD_LINK)
