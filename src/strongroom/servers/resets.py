"""POST /.strongroom/reset: who may ask for it, and for what.

Lives here: the query, and the signatures that a server needs which other machines can reach. Must
not live here: what a reset does (services/reset.py), `Host` and `Origin` (own_hosts.py).

Without the header Authorization a reset needs no key, so only a server on loopback accepts that.
It refuses if a proxy says that it forwards the request, since other machines may reach the proxy.
Elsewhere the header has one SharedKey signature for each account that would be reset, separated by
commas. Each covers the whole request, as for the Blob service. SharedKeyLite is refused, since it
leaves out the query, which says what is reset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from strongroom.auth.accounts import Account
from strongroom.auth.canonical import Scheme
from strongroom.auth.request import Service
from strongroom.auth.shared_key import parse_authorization, verify
from strongroom.errors.core import StorageError
from strongroom.services.core.outcomes import BROKEN
from strongroom.services.core.resetting import ResetRefused
from strongroom.services.core.runner import Services
from strongroom.services.reset import ResetScope, reset
from strongroom.wire.core.http import Request

_PARAMETERS: Final = ("account", "service")
_log = logging.getLogger(__name__)
_OF_PROXIES: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_NAMES: Final = tuple(service.value for service in Service)


class ResetProblem(Exception):
    """A reset that is not carried out; `status` is that of its answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Resets:
    """Carries out resets.

    Attributes:
        is_durable: whether the store outlives the process.
        requires_signature: whether a request must be signed by a key of each account.
    """

    services: Services
    accounts: Callable[[], tuple[Account, ...]]
    wall_ticks: Callable[[], int]
    is_durable: bool
    requires_signature: bool

    async def answer(self, request: Request) -> tuple[int, Mapping[str, str | Mapping[str, int]]]:
        """Carry out a reset. Return the status and the content of its answer."""
        try:
            removed = await self.run(request)
        except ResetProblem as problem:
            return problem.status, {"error": str(problem)}
        except BROKEN as error:
            text = f"The reset is not complete, and can be repeated: {error}"
            return 503, {"error": text}
        _log.info("reset by %s: %s", request.peer, removed)
        return 200, {"removed": removed}

    async def run(self, request: Request) -> dict[str, int]:
        """How many containers, queues, tables and shares were removed. Raises: ResetProblem, the
        engine's errors."""
        served = self.accounts()
        accounts, chosen = _scope(request.query, served)
        if self.requires_signature or _is_forwarded(request):
            self._require_signatures(request, accounts)
        scope = ResetScope(
            tuple(one.name for one in accounts),
            chosen,
            tuple(one.name for one in served),
            self.is_durable,
        )
        try:
            return await reset(self.services, scope)
        except ResetRefused as refusal:
            raise ResetProblem(409, str(refusal)) from None

    def _require_signatures(self, request: Request, accounts: tuple[Account, ...]) -> None:
        credentials = request.headers.get("authorization")
        if credentials is None:
            names = ", ".join(one.name for one in accounts)
            raise ResetProblem(
                403,
                "Other machines can reach this server, or the proxy before it, so a reset must be "
                "signed: "
                f"Authorization: SharedKey ACCOUNT:SIGNATURE, for each of {names}, with commas "
                "between them.",
            )
        if "authorization" in request.headers.repeats:
            raise ResetProblem(400, "The header Authorization is given more than once.")
        try:
            signed = [parse_authorization(text.strip()) for text in credentials.split(",")]
            for account in accounts:
                credential = next((one for one in signed if one.account == account.name), None)
                if credential is None or credential.scheme is not Scheme.SHARED_KEY:
                    raise ResetProblem(403, f"A SharedKey signature of {account.name} is missing.")
                verify(credential, request, Service.BLOB, account, self.wall_ticks())
        except StorageError as error:
            raise ResetProblem(error.row.status, error.message) from None


def _is_forwarded(request: Request) -> bool:
    return any(request.headers.get(name) is not None for name in _OF_PROXIES)


def _scope(
    query: str | None, served: tuple[Account, ...]
) -> tuple[tuple[Account, ...], tuple[Service, ...]]:
    """The accounts and the services that a query names."""
    pairs = parse_qsl(query or "", keep_blank_values=True)
    parameters = dict(pairs)
    if len(parameters) != len(pairs) or set(parameters) - set(_PARAMETERS):
        raise ResetProblem(400, "A reset takes ?account=NAME and ?service=NAME, each at most once.")
    accounts = tuple(one for one in served if one.name == parameters.get("account", one.name))
    if not accounts:
        raise ResetProblem(404, f"This server has no account {parameters['account'][:24]!r}.")
    name = parameters.get("service")
    if name is not None and name not in _NAMES:
        raise ResetProblem(400, f"service must be one of {', '.join(_NAMES)}.")
    return accounts, tuple(one for one in Service if one.value == (name or one.value))
