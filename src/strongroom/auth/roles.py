"""Roles: the actions that each of Azure's built-in roles permits, and the role assignments.

Files and reloading: servers/identities/roles_file.py. Source: "Azure built-in roles for Storage"
and "Authorize with Microsoft Entra ID", table "Permissions for calling data operations". Actions
have the names of that table, without the common prefix
`Microsoft.Storage/storageAccounts/...Services/`. The names for blobs, messages and entities also
omit their container, queue or table.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from strongroom.auth.request import Service, Target

ASSIGNMENTS_MAX: Final = 10_000

_DELEGATE: Final = "generateUserDelegationKey/action"
_PRINCIPAL: Final = re.compile(r"[\x21-\x7e]{1,256}")
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
_RESOURCE: Final = re.compile(r"[$A-Za-z0-9-]{1,63}")
_STORAGE: Final = frozenset(Service)
OPERATOR: Final = "Strongroom Operator"
"""The role of those who see the figures of the whole server in the console. It permits no access to
data, in no service."""


class RolesError(ValueError):
    """The text says what is wrong and where."""


class Role(msgspec.Struct, frozen=True):
    """`actions` are permitted in `services` only."""

    services: frozenset[Service]
    actions: frozenset[str]


def _role(services: Collection[Service], *actions: str) -> Role:
    return Role(frozenset(services), frozenset(actions))


_BLOB, _QUEUE, _TABLE, _FILE = ((one,) for one in Service)
_ACL: Final = ("getAcl/action", "setAcl/action")
_MANAGEMENT: Final = (
    "services/read",
    "services/write",
    *(f"{place}/{action}" for place in ("containers", "queues", "tables") for action in _ACL),
    "shares/read",
    "shares/write",
    "shares/delete",
)
_CONTAINERS: Final = ("containers/read", "containers/write", "containers/delete")
_BLOBS: Final = (
    "blobs/read",
    "blobs/write",
    "blobs/add/action",
    "blobs/delete",
    "blobs/move/action",
)

ROLES: Final[dict[str, Role]] = {
    "Storage Blob Data Reader": _role(_BLOB, _DELEGATE, "containers/read", "blobs/read"),
    "Storage Blob Data Contributor": _role(_BLOB, _DELEGATE, *_CONTAINERS, *_BLOBS),
    "Storage Blob Data Owner": _role(
        _BLOB,
        _DELEGATE,
        *_CONTAINERS,
        *_BLOBS,
        *(f"containers/{action}" for action in _ACL),
        "blobs/tags/read",
        "blobs/tags/write",
        "blobs/filter/action",
        "blobs/deleteBlobVersion/action",
        "blobs/permanentDelete/action",
        "blobs/immutableStorage/runAsSuperUser/action",
    ),
    # In Azure this is a role for blobs only; queues got their own role with delegation keys.
    "Storage Blob Delegator": _role(_BLOB, _DELEGATE),
    "Storage Queue Delegator": _role(_QUEUE, _DELEGATE),
    "Storage Queue Data Reader": _role(_QUEUE, "queues/read", "messages/read"),
    "Storage Queue Data Contributor": _role(
        _QUEUE,
        _DELEGATE,
        "queues/read",
        "queues/write",
        "queues/delete",
        "messages/read",
        "messages/write",
        "messages/delete",
        "messages/process/action",
    ),
    "Storage Queue Data Message Processor": _role(
        _QUEUE, "messages/read", "messages/process/action"
    ),
    "Storage Queue Data Message Sender": _role(_QUEUE, "messages/add/action"),
    "Storage Table Data Reader": _role(_TABLE, "tables/read", "entities/read"),
    "Storage Table Data Contributor": _role(
        _TABLE,
        "tables/read",
        "tables/write",
        "tables/delete",
        "entities/read",
        "entities/write",
        "entities/add/action",
        "entities/update/action",
        "entities/delete",
    ),
    "Storage File Delegator": _role(_FILE, _DELEGATE),
    "Storage File Data Privileged Reader": _role(_FILE, "files/read"),
    "Storage File Data Privileged Contributor": _role(
        _FILE, "files/read", "files/write", "files/delete"
    ),
    # The part of Azure's account management role that concerns the services themselves, and access
    # control lists. It permits management of shares too, which the roles for files do not.
    "Storage Account Contributor": _role(_STORAGE, *_MANAGEMENT),
    # Azure has no such role. In one account it is enough for the whole server.
    OPERATOR: _role(()),
}
"""Every role, by its name."""

ACTIONS: Final = frozenset(action for role in ROLES.values() for action in role.actions)

# The letters of a SAS that correspond to actions, by service.
_LETTERS: Final[dict[Service, tuple[tuple[str, str], ...]]] = {
    Service.BLOB: (
        ("r", "blobs/read"),
        ("a", "blobs/add/action"),
        ("c", "blobs/add/action"),
        ("w", "blobs/write"),
        ("d", "blobs/delete"),
        ("x", "blobs/deleteBlobVersion/action"),
        ("y", "blobs/permanentDelete/action"),
        ("l", "blobs/read"),
        ("t", "blobs/tags/write"),
        ("f", "blobs/filter/action"),
        ("m", "blobs/move/action"),
        ("i", "blobs/immutableStorage/runAsSuperUser/action"),
    ),
    Service.QUEUE: (
        ("r", "messages/read"),
        ("a", "messages/add/action"),
        ("a", "messages/write"),
        ("u", "messages/write"),
        ("p", "messages/process/action"),
    ),
    Service.TABLE: (
        ("r", "entities/read"),
        ("a", "entities/add/action"),
        ("u", "entities/update/action"),
        ("d", "entities/delete"),
    ),
    Service.FILE: (
        ("r", "files/read"),
        ("c", "files/write"),
        ("w", "files/write"),
        ("d", "files/delete"),
        ("l", "files/read"),
    ),
}


def _no_role(text: str) -> str:
    """The error text for an unknown role, with the most similar names."""
    by_words = [name for name in ROLES if text and text.lower() in name.lower()]
    near = by_words[:3] or difflib.get_close_matches(text[:64], ROLES, 2)
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"there is no role {text[:64]!r}: {meant}'strongroom role names' lists all"


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The assignment of a role to a principal.

    Attributes:
        principal: the object id (claim `oid`, else `sub`) of a user, or the id of a group.
        role: one of ROLES.
        resource: a container, queue, table or share of the account; "" = the whole account.
    """

    principal: str
    role: str
    account: str
    resource: str = ""

    def __post_init__(self) -> None:
        if not _PRINCIPAL.fullmatch(self.principal):
            raise RolesError(
                f"principal {self.principal[:64]!r}: it must be an id of 1 to 256 visible ASCII "
                "characters, as the claims 'oid' and 'groups' have it"
            )
        if self.role not in ROLES:
            raise RolesError(_no_role(self.role))
        if not _ACCOUNT.fullmatch(self.account):
            raise RolesError(
                f"account name {self.account[:64]!r}: it must have 3 to 24 lower-case letters or "
                "digits"
            )
        if self.resource and not _RESOURCE.fullmatch(self.resource):
            raise RolesError(
                f"resource {self.resource[:64]!r}: it must be the name of a container, queue or "
                "table"
            )


Assignments = tuple[Assignment, ...]


def full_assignments(principal: str, account: str) -> Assignments:
    """Assignments that permit every action of an account that a role can permit."""
    names = (
        "Storage Blob Data Owner",
        "Storage Queue Data Contributor",
        "Storage Queue Data Message Sender",
        "Storage Table Data Contributor",
        "Storage File Data Privileged Contributor",
        "Storage File Delegator",
        "Storage Account Contributor",
        OPERATOR,
    )
    return tuple(Assignment(principal, name, account) for name in names)


def permitted_actions(
    assignments: Iterable[Assignment], target: Target, anywhere: bool = False
) -> set[str]:
    """The actions that assignments permit on a target.

    Arguments:
        assignments: the assignments of one principal and its groups, in any account.
        anywhere: whether roles on single resources count although the target is the account.
    """
    actions: set[str] = set()
    for one in assignments:
        role = ROLES[one.role]
        if one.account != target.account or target.service not in role.services:
            continue
        if anywhere or not one.resource or _is_named(one.resource, target):
            actions |= role.actions
    return actions


def _is_named(resource: str, target: Target) -> bool:
    if target.container is None:
        return False
    if target.service is Service.TABLE:
        return resource.lower() == target.container.lower()
    return resource == target.container


def permits(needed: Iterable[str], actions: Collection[str]) -> bool:
    """Whether the actions include one of the needed alternatives.

    An alternative may be several actions separated by spaces, which are needed together.
    """
    return any(all(one in actions for one in alternative.split()) for alternative in needed)


def role_permits(name: str, needed: Iterable[str], service: Service) -> bool:
    role = ROLES[name]
    return service in role.services and permits(needed, role.actions)


def letters_of(actions: Collection[str], service: Service) -> str:
    """The letters of a SAS that correspond to these actions."""
    letters = (letter for letter, action in _LETTERS.get(service, ()) if action in actions)
    return "".join(dict.fromkeys(letters))


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    assignments: Assignments


def parse_document(text: bytes) -> Assignments:
    """Parse a roles file: `{"assignments": [{"principal": ..., "role": ..., "account": ...,
    "resource": ...}]}`."""
    try:
        assignments = msgspec.json.decode(text, type=_Document).assignments
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RolesError(f"the role assignments cannot be read: {error}") from None
    if len(assignments) > ASSIGNMENTS_MAX:
        raise RolesError(f"there are more than {ASSIGNMENTS_MAX} role assignments")
    return assignments


def serialise_document(assignments: Iterable[Assignment]) -> bytes:
    document = _Document(tuple(assignments))
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_row(name: str, text: bytes) -> Assignment:
    """Parse one row of a roles document. `name` is where it was found: its `row_name`."""
    try:
        found = msgspec.json.decode(text, type=Assignment)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RolesError(f"a role assignment cannot be read: {error}") from None
    if row_name(found) != name:
        raise RolesError(f"a role of principal {found.principal!r}: it is kept as another one")
    return found


def serialise_row(assignment: Assignment) -> bytes:
    return msgspec.json.encode(assignment)


def row_name(one: Assignment) -> str:
    """Return what distinguishes an assignment from all others. Those of a principal sort
    together."""
    return "\n".join((one.principal, one.account, one.role, one.resource))
