"""Containers, queues, tables and shares of a setup, with their access levels and policies.

Lives here: what is created, compared and set. Must not live here: sending a request (requests.py),
the blobs of a container (blobs.py).

What is created in one request is whole at once. A policy is something of its own: one that is
missing is created. So a start that was killed between two requests is completed by the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.services.core.calls import Place
from strongroom.services.core.runner import Services
from strongroom.setup.document import (
    AccountSetup,
    ContainerSetup,
    PolicySetup,
    QueueSetup,
    ShareSetup,
    TableSetup,
)
from strongroom.setup.report import SetupReport
from strongroom.setup.requests import Asked, OwnRequests
from strongroom.times import parse_iso8601
from strongroom.values import AccessPolicy, PublicAccess
from strongroom.wire.core.headers import METADATA_PREFIX
from strongroom.wire.core.signed_identifiers import write_signed_identifiers

PlaceSetup = ContainerSetup | QueueSetup | TableSetup | ShareSetup
_JSON: Final = (
    ("Accept", "application/json;odata=nometadata"),
    ("Content-Type", "application/json"),
    ("Prefer", "return-no-content"),
    ("DataServiceVersion", "3.0"),
)
_PUBLIC_ACCESS: Final = "x-ms-blob-public-access"
_ACCESS_WORDS: Final = {
    PublicAccess.NONE: "private",
    PublicAccess.BLOB: "blob",
    PublicAccess.CONTAINER: "container",
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of place. `restype` selects it in a URL; `exists` is the error of a second
    creation."""

    service: Service
    noun: str
    restype: str
    exists: str


_CONTAINER: Final = _Kind(Service.BLOB, "container", "restype=container", "ContainerAlreadyExists")
_QUEUE: Final = _Kind(Service.QUEUE, "queue", "", "QueueAlreadyExists")
_TABLE: Final = _Kind(Service.TABLE, "table", "", "TableAlreadyExists")
_SHARE: Final = _Kind(Service.FILE, "share", "restype=share", "ShareAlreadyExists")


class PlacesSetup:
    """Makes the places of one account. What is there is read by `services`, changed by
    `requests`."""

    def __init__(self, services: Services, requests: OwnRequests, report: SetupReport) -> None:
        self._services = services
        self._requests = requests
        self._report = report

    async def make_all(self, account: AccountSetup) -> None:
        """Make what is missing, and compare what is there. Raises: SetupError."""
        kinds: tuple[tuple[_Kind, Sequence[PlaceSetup]], ...] = (
            (_CONTAINER, account.containers),
            (_QUEUE, account.queues),
            (_TABLE, account.tables),
            (_SHARE, account.shares),
        )
        for kind, wanted in kinds:
            for one in wanted:
                await self._make(account.name, kind, one)

    async def _make(self, account: str, kind: _Kind, wanted: PlaceSetup) -> None:
        place = await self._services.place(kind.service, account, wanted.name)
        if place is None and await self._create(account, kind, wanted):
            self._report.created(_what(kind, account, wanted))
        else:
            self._compare(account, kind, wanted, place)
        place = await self._services.place(kind.service, account, wanted.name)
        if place is not None:
            await self._set_access(account, kind, wanted, place)

    async def _create(self, account: str, kind: _Kind, wanted: PlaceSetup) -> bool:
        if kind is _TABLE:
            body = msgspec.json.encode({"TableName": wanted.name})
            asked = Asked(kind.service, account, "POST", "/Tables", _JSON, body)
        else:
            target, fields = _target(kind, wanted.name), _creation_fields(wanted)
            asked = Asked(kind.service, account, "PUT", target, fields)
        return await self._requests.do(asked, unless=kind.exists)

    def _compare(self, account: str, kind: _Kind, wanted: PlaceSetup, place: Place | None) -> None:
        """Say that a place was left, and in what it differs that no flag sets."""
        what = _what(kind, account, wanted)
        self._report.left(what)
        record = None if place is None else place.record
        for name, found, given in _fixed_properties(wanted, record):
            if found != given:
                text = f"{what}: {name} is {found!r}, the file says {given!r}"
                self._report.differs(text, may_be_set=False)

    async def _set_access(
        self, account: str, kind: _Kind, wanted: PlaceSetup, place: Place
    ) -> None:
        """Create missing policies, and set or compare the access level and all policies."""
        what = _what(kind, account, wanted)
        given = wanted.public_access if isinstance(wanted, ContainerSetup) else None
        access, policies = place.public_access, place.policies
        if given is not None and given is not access:
            if self._report.overwrites:
                access = given
                self._report.set(f"{what}: access is {_ACCESS_WORDS[given]}")
            else:
                found, says = _ACCESS_WORDS[access], _ACCESS_WORDS[given]
                self._report.differs(f"{what}: access is {found}, the file says {says}")
        if wanted.policies is not None:
            policies = self._policies(what, wanted.policies, policies)
        if (access, policies) != (place.public_access, place.policies):
            await self._put_acl(account, kind, wanted.name, access, policies)

    def _policies(
        self, what: str, wanted: Sequence[PolicySetup], found: tuple[AccessPolicy, ...]
    ) -> tuple[AccessPolicy, ...]:
        """Return the policies that a place is to have, and say what becomes of each."""
        given = tuple(one.policy() for one in wanted)
        if self._report.overwrites:
            if _comparable(given) == _comparable(found):
                return found
            self._report.set(f"{what}: its policies are {_ids(given)}")
            return given
        known = {one.id: one for one in found}
        kept = list(found)
        for one in given:
            name = f"policy {one.id} of {what}"
            if one.id not in known and len(kept) >= limits.STORED_POLICIES_MAX:
                self._report.differs(f"{name} is missing, and there are five others")
            elif one.id not in known:
                kept.append(one)
                self._report.created(name)
            elif _comparable([one]) != _comparable([known[one.id]]):
                self._report.differs(name)
        for one in found:
            if one.id not in {ours.id for ours in given}:
                self._report.differs(f"policy {one.id} of {what} is not in the file")
        return tuple(kept)

    async def _put_acl(
        self,
        account: str,
        kind: _Kind,
        name: str,
        access: PublicAccess,
        policies: tuple[AccessPolicy, ...],
    ) -> None:
        fields = ((_PUBLIC_ACCESS, access.value),) if access.value else ()
        target = _target(kind, name, "comp=acl")
        body = write_signed_identifiers(policies)
        await self._requests.do(Asked(kind.service, account, "PUT", target, fields, body))


def _what(kind: _Kind, account: str, wanted: PlaceSetup) -> str:
    return f"{kind.noun} {account}/{wanted.name}"


def _target(kind: _Kind, name: str, *parameters: str) -> str:
    query = "&".join(one for one in (kind.restype, *parameters) if one)
    return f"/{quote(name)}" + (f"?{query}" if query else "")


def _creation_fields(wanted: PlaceSetup) -> list[tuple[str, str]]:
    fields = []
    if not isinstance(wanted, TableSetup):
        fields += [(f"{METADATA_PREFIX}{name}", text) for name, text in wanted.metadata.items()]
    if isinstance(wanted, ContainerSetup) and wanted.public_access:
        fields += [(_PUBLIC_ACCESS, wanted.public_access.value)] * bool(wanted.public_access.value)
    if isinstance(wanted, ShareSetup) and wanted.quota_gib is not None:
        fields.append(("x-ms-share-quota", str(wanted.quota_gib)))
    return fields


def _fixed_properties(wanted: PlaceSetup, record: Any) -> list[tuple[str, Any, Any]]:
    """Return (name, value, value in the file) of what is set at the creation only."""
    properties: list[tuple[str, Any, Any]] = []
    if record is None or isinstance(wanted, TableSetup):
        return properties
    if wanted.metadata:
        properties.append(("metadata", _folded(dict(record.metadata)), _folded(wanted.metadata)))
    if isinstance(wanted, ShareSetup) and wanted.quota_gib is not None:
        properties.append(("quota_gib", record.quota_gib, wanted.quota_gib))
    return properties


def _folded(metadata: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in sorted(metadata.items())}


def _ids(policies: Sequence[AccessPolicy]) -> str:
    return ", ".join(one.id for one in policies) or "none"


def _comparable(policies: Sequence[AccessPolicy]) -> list[tuple[Any, ...]]:
    """Return policies in a form in which those that mean the same are equal."""
    return sorted(
        (
            one.id,
            _ticks(one.start),
            _ticks(one.expiry),
            "".join(sorted(one.permission or "")),
        )
        for one in policies
    )


def _ticks(text: str | None) -> int:
    return -1 if text is None else parse_iso8601(text) or 0
