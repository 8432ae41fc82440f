"""The file of `--setup`: its form as types, and errors that name the file, the line and the key.

Lives here: what the file may say, and its checks. Must not live here: reading files and the
environment (files.py), what is made of it (places.py and its neighbours). Docs: setup.md.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from strongroom.auth.request import Service
from strongroom.auth.roles import ROLES, Assignment, RolesError
from strongroom.config import ConfigError
from strongroom.errors.core import StorageError
from strongroom.semantics.core import cors, names
from strongroom.service_properties import CorsRule
from strongroom.setup.lines import Path, line_of
from strongroom.values import AccessPolicy, PublicAccess
from strongroom.wire.core.signed_identifiers import (
    read_queue_identifiers,
    read_signed_identifiers,
    write_signed_identifiers,
)
from strongroom.wire.core.xml import has_illegal

ServiceName = Literal["blob", "queue", "table", "file"]
ALL_SERVICES: Final[tuple[ServiceName, ...]] = ("blob", "queue", "table", "file")
_ACCESS: Final = {
    "private": PublicAccess.NONE,
    "blob": PublicAccess.BLOB,
    "container": PublicAccess.CONTAINER,
}
_AT: Final = re.compile(r"(.*) - at `\$([^`]*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d*|\.\.\.)\]")
_NAME_OF_FIELD: Final = re.compile(r"field `([^`]*)`")


class SetupError(ConfigError):
    """The setup cannot be read or carried out. The text names the file, and where it can the line
    and the key."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class PolicySetup(_Part, frozen=True, kw_only=True):
    """A stored access policy. Times are UTC, as ISO 8601."""

    id: str
    start: str | None = None
    expiry: str | None = None
    permission: str | None = None

    def policy(self) -> AccessPolicy:
        return AccessPolicy(self.id, self.start, self.expiry, self.permission)


class _Place(_Part, frozen=True, kw_only=True):
    """What containers, queues, tables and shares have in common. `policies` None: the file says
    nothing about them."""

    name: str
    policies: tuple[PolicySetup, ...] | None = None


class TableSetup(_Place, frozen=True, kw_only=True):
    """A table."""


class QueueSetup(_Place, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class ShareSetup(_Place, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}
    quota_gib: int | None = None


class ContainerSetup(_Place, frozen=True, kw_only=True):
    """A container. `access` None: private, and an existing one may have any. The files below
    `folder` are its sample blobs."""

    access: Literal["private", "blob", "container"] | None = None
    metadata: dict[str, str] = {}
    folder: str | None = None

    @property
    def public_access(self) -> PublicAccess | None:
        return None if self.access is None else _ACCESS[self.access]


class CorsSetup(_Part, frozen=True, kw_only=True):
    """A rule of CORS for some of the services."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    services: tuple[ServiceName, ...] = ALL_SERVICES
    headers: tuple[str, ...] = ()
    exposed_headers: tuple[str, ...] = ()
    max_age_s: int = 0

    def rule(self) -> CorsRule:
        return CorsRule(
            self.origins, self.methods, self.headers, self.exposed_headers, self.max_age_s
        )


class RoleSetup(_Part, frozen=True, kw_only=True):
    """A role in an account, or in one container, queue, table or share of it."""

    role: str
    principal: str
    container: str = ""
    queue: str = ""
    table: str = ""
    share: str = ""

    @property
    def places(self) -> dict[str, str]:
        """The place that it names, by service."""
        named = zip(ALL_SERVICES, (self.container, self.queue, self.table, self.share), strict=True)
        return {service: name for service, name in named if name}

    def assignment(self, account: str) -> Assignment:
        """Return it as the roles file has it. Raises: RolesError."""
        return Assignment(self.principal, self.role, account, next(iter(self.places.values()), ""))


class AccountSetup(_Part, frozen=True, kw_only=True):
    """An account and what it is to have. `cors` and `roles` None: the file says nothing about
    them."""

    name: str
    keys: tuple[str, ...] = ()
    containers: tuple[ContainerSetup, ...] = ()
    queues: tuple[QueueSetup, ...] = ()
    tables: tuple[TableSetup, ...] = ()
    shares: tuple[ShareSetup, ...] = ()
    cors: tuple[CorsSetup, ...] | None = None
    roles: tuple[RoleSetup, ...] | None = None

    def cors_rules(self) -> dict[Service, tuple[CorsRule, ...]]:
        """Return the rules of each service that the file speaks of. An empty array speaks of
        all."""
        if self.cors is None:
            return {}
        spoken_of = {name for one in self.cors for name in one.services} or set(ALL_SERVICES)
        return {
            Service(name): tuple(one.rule() for one in self.cors if name in one.services)
            for name in ALL_SERVICES
            if name in spoken_of
        }


class SetupDocument(_Part, frozen=True, kw_only=True):
    """The whole file."""

    accounts: tuple[AccountSetup, ...] = ()


class Located:
    """A file whose errors name the line. `path` is how they name the file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._text = text

    def error(self, at: Path, problem: str) -> SetupError:
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
        key = f"{shown.removeprefix('.')}: " if at else ""
        return SetupError(f"{self.path}, line {line_of(self._text, at)}: {key}{problem}")


def parse(path: str, text: str) -> tuple[SetupDocument, Located]:
    """Parse and check the text of a setup file. Raises: SetupError."""
    try:
        parsed = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number too long, and too deep nesting
        raise SetupError(f"{path}: {error}") from None
    located = Located(path, text)
    try:
        document = msgspec.convert(_plain(parsed), SetupDocument)
    except msgspec.ValidationError as error:
        raise located.error(*_problem(str(error))) from None
    for at, problem in _problems(document):
        raise located.error(at, problem)
    return document, located


def _plain(value: Any) -> Any:
    """Return a parsed value with times as texts in UTC, as Azure writes them."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        with suppress(OverflowError):  # before year 1 or after 9999 in UTC; its check refuses it
            utc = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return f"{utc.isoformat()}Z"
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def _problem(text: str) -> tuple[list[str | int], str]:
    """Return the path and the problem of an error of msgspec."""
    match = _AT.fullmatch(text)
    problem, where = (match[1], match[2]) if match else (text, "")
    at: list[str | int] = [
        name or (int(index) if index.isdigit() else 0) for name, index in _STEP.findall(where)
    ]
    unknown = _NAME_OF_FIELD.search(problem)
    if problem.startswith("Object contains unknown field") and unknown is not None:
        return [*at, unknown[1]], "there is no such key"
    if problem.startswith("Object missing required field") and unknown is not None:
        return at, f"the key {unknown[1]!r} is missing"
    return at, problem


_Problems = Iterator[tuple[list[str | int], str]]


def _problems(document: SetupDocument) -> _Problems:
    """Yield what is wrong, with the path to it."""
    yield from _repeated(["accounts"], (one.name for one in document.accounts))
    for number, account in enumerate(document.accounts):
        yield from _of_account(["accounts", number], account)


def _of_account(at: list[str | int], account: AccountSetup) -> _Problems:
    places: tuple[tuple[str, tuple[_Place, ...], Callable[[str], None]], ...] = (
        ("containers", account.containers, names.check_container),
        ("queues", account.queues, names.check_queue),
        ("tables", account.tables, names.check_table),
        ("shares", account.shares, names.check_queue),
    )
    for key, named, check in places:
        folded = (one.name.lower() for one in named)
        yield from _repeated([*at, key], folded)
        for number, place in enumerate(named):
            here = [*at, key, number]
            yield from _refused([*here, "name"], check, place.name)
            yield from _of_policies([*here, "policies"], key, place.policies or ())
            metadata = getattr(place, "metadata", {})
            pairs = tuple(metadata.items())
            yield from _refused([*here, "metadata"], names.check_metadata, pairs)
    for service, rules in account.cors_rules().items():
        yield from _refused([*at, "cors"], cors.check_rules, rules, f"{service.value}: ")
    for number, role in enumerate(account.roles or ()):
        yield from _of_role([*at, "roles", number], role, account.name)


def _of_policies(at: list[str | int], places: str, policies: tuple[PolicySetup, ...]) -> _Problems:
    read = read_queue_identifiers if places == "queues" else read_signed_identifiers
    yield from _repeated(at, (one.id for one in policies), "id")
    for number, one in enumerate(policies):
        if has_illegal(one.id):
            yield [*at, number, "id"], "it has a character that XML does not permit"
        yield from _refused([*at, number], read, write_signed_identifiers([one.policy()]))
    document = write_signed_identifiers([one.policy() for one in policies])
    yield from _refused(at, read, document)


def _of_role(at: list[str | int], role: RoleSetup, account: str) -> _Problems:
    try:
        role.assignment(account)
    except RolesError as error:
        yield at, str(error)
        return
    services = {one.value for one in ROLES[role.role].services}
    if len(role.places) > 1:
        yield at, "name one of container, queue, table and share"
    elif not services.issuperset(role.places):
        yield at, f"{role.role!r} is a role of {', '.join(sorted(services))} only"


def _repeated(at: list[str | int], found: Iterable[str], key: str = "name") -> _Problems:
    values = list(found)
    for value, count in Counter(values).items():
        if count > 1:
            last = len(values) - 1 - values[::-1].index(value)
            yield [*at, last, key], f"{value!r} is there already"


def _refused(
    at: list[str | int], check: Callable[[Any], object], value: Any, prefix: str = ""
) -> _Problems:
    """Yield why the server would refuse a value."""
    try:
        check(value)
    except StorageError as error:
        details = ", ".join(text for _, text in error.extras)
        first = error.message.partition("\n")[0]
        yield at, f"{prefix}{first}" + (f" ({details})" if details else "")
