"""The account's own operations: service properties, account information, CORS.

Lives here: reading and merging the properties of a service, and the CORS headers that follow from
them. Source: "Get/Set Blob Service Properties", "Get Account Information", "Preflight Blob
Request".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from strongroom.auth.request import Service
from strongroom.engines.base import RECORD_BYTES_MAX, Commit, Step, Write
from strongroom.errors import core as errors
from strongroom.errors.core import Extras, StorageError
from strongroom.semantics.core import cors
from strongroom.service_properties import DEFAULTS, ServiceProperties
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records

# A cache that also serves browsers may keep answers to reads without an Origin: they need Vary.
_CACHED_METHODS: Final = ("GET", "HEAD")


class SetServiceProperties(msgspec.Struct, frozen=True):
    """Sections that are None stay as they are."""

    properties: ServiceProperties


class AccountInformation(msgspec.Struct, frozen=True):
    sku_name: str = "Standard_LRS"
    kind: str = "StorageV2"
    hierarchical_namespace: bool = False


class Preflight(msgspec.Struct, frozen=True):
    """Origin, Access-Control-Request-Method and the elements of Access-Control-Request-Headers;
    None = not sent."""

    origin: str | None = None
    method: str | None = None
    headers: tuple[str, ...] = ()


async def properties(services: Services, service: Service, account: str) -> ServiceProperties:
    """With defaults for what was never set."""
    (record,) = await services.store.read([keys.service_properties(account, service.value)])
    return records.PROPERTIES.of(record) or DEFAULTS[service.value]


async def get_properties(services: Services, call: Call[Any]) -> ServiceProperties:
    return await properties(services, call.target.service, call.target.account)


async def set_properties(services: Services, call: Call[SetServiceProperties]) -> None:
    request = call.input.properties
    _check(request)
    service = call.target.service.value
    ref, reads = keys.service_properties(call.target.account, service), Reads()
    before = reads.add(ref, records.PROPERTIES)
    await services.commit(
        _Set(ref.partition, reads.refs, call.rule.purpose, before, service, request)
    )


class _Set(Decision[None], frozen=True):
    before: ReadOne[ServiceProperties]
    service: str
    given: ServiceProperties

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        before = found[self.before] or DEFAULTS[self.service]
        encoded = records.PROPERTIES.encode(before.updated(self.given))
        if len(encoded) > RECORD_BYTES_MAX:
            extras = (("MaxLimit", str(RECORD_BYTES_MAX)),)
            raise StorageError(errors.REQUEST_BODY_TOO_LARGE, None, extras)
        return Commit(None, (Step(self.partition, (Write(self.before.ref.key, encoded),)),))


def _check(request: ServiceProperties) -> None:
    cors.check_rules(request.cors or ())
    if request.static_website is not None and request.static_website.enabled:
        raise _not_implemented("StaticWebsite", "Enabled")
    if request.smb_multichannel:
        raise _not_implemented("Multichannel", "Enabled")


def _not_implemented(section: str, name: str) -> StorageError:
    message = f"This server does not implement {section} with {name}; only false is accepted."
    return StorageError(errors.NOT_IMPLEMENTED, message)


async def get_stats(services: Services, call: Call[Any]) -> int:
    """The tick up to which the secondary is in sync."""
    if not call.target.secondary:
        reason = "Statistics are read at the secondary endpoint: ACCOUNT-secondary."
        raise errors.invalid_query("comp", "stats", reason)
    return await services.store.now()


async def get_information(services: Services, call: Call[Any]) -> AccountInformation:
    return AccountInformation(kind=services.switches(call.target.account).kind)


async def preflight(services: Services, call: Call[Preflight]) -> Extras:
    """The headers that state what an origin may do."""
    request = call.input
    rules = (await properties(services, call.target.service, call.target.account)).cors or ()
    return cors.preflight(rules, request.origin, request.method, request.headers)


async def cors_headers(
    services: Services,
    service: Service,
    account: str,
    origin: str | None,
    method: str,
    response_headers: Iterable[str],
) -> Extras:
    """The headers that CORS adds to the answer of an actual request, successful or not.
    `response_headers` are the names in the answer, of which a rule exposes some."""
    if origin is None and method not in _CACHED_METHODS:
        return ()
    rules = (await properties(services, service, account)).cors or ()
    return cors.actual(rules, origin, method, response_headers)
