"""The requests of a setup: signed by the account, and answered by the path of every request.

Lives here: making, signing and answering one request, without a socket. Must not live here: which
requests there are (places.py and its neighbours).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from strongroom.auth.accounts import Accounts
from strongroom.auth.canonical import Scheme, StringsToSign
from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.servers.requests.pipeline import respond
from strongroom.servers.service_listeners import Contexts
from strongroom.setup.document import SetupError
from strongroom.setup.files import RequestBytes
from strongroom.values import rfc1123
from strongroom.wire.core.http import BodyReader, Headers, Request, Response

_VERSION: Final = "2025-11-05"
_FAILED: Final = 400
_NOT_FOUND: Final = 404

Fields = Sequence[tuple[str, str]]


class Asked(NamedTuple):
    """A request of a setup.

    Attributes:
        target: the URL's part behind the account, percent-encoded.
    """

    service: Service
    account: str
    method: str
    target: str
    fields: Fields = ()
    body: BodyReader | bytes = b""


class Answer:
    """The answer to a request: its status, and its error code if it is a refusal.

    Attributes:
        size_bytes: the Content-Length, of an answer to HEAD too.
    """

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.reason = response.reason or ""
        self.headers = Headers(response.headers)
        self.size_bytes = response.size_bytes

    @property
    def code(self) -> str:
        """The error code; empty if the request was carried out."""
        return self.headers.get("x-ms-error-code") or ""


class OwnRequests:
    """Sends the requests of a setup. `accounts` have the keys that sign."""

    def __init__(self, contexts: Contexts, accounts: Accounts, clock: Clock) -> None:
        self._contexts = contexts
        self._accounts = accounts
        self._clock = clock

    async def ask(self, asked: Asked) -> Answer:
        """Send a request, and return its answer, refused or not."""
        service, account, method, target, fields, body = asked
        sent = RequestBytes(body) if isinstance(body, bytes) else body
        all_fields = [
            ("x-ms-version", _VERSION),
            ("x-ms-date", rfc1123(self._clock.wall_ticks())),
            ("Content-Length", str(sent.size_bytes)),
            *fields,
        ]
        request = Request(method, f"/{account}{target}", Headers(all_fields), sent)
        owner = self._accounts.get(account)
        if owner is None:
            raise SetupError(f"the account {account} is not served any more")
        text = StringsToSign(Scheme.SHARED_KEY, service, request, account).of()
        signature = owner.signers[0].sign(text).decode()
        signed = ("Authorization", f"{Scheme.SHARED_KEY.value} {account}:{signature}")
        request.headers = Headers([*all_fields, signed])
        response = await respond(self._contexts[service], request)
        if response.finished is not None:
            response.finished()
        return Answer(response)

    async def do(self, asked: Asked, unless: str = "") -> bool:
        """Send a request that is to succeed. Return whether it did; it may fail with the error code
        `unless`.

        Raises: SetupError when it is refused with another one.
        """
        answer = await self.ask(asked)
        if answer.status < _FAILED:
            return True
        if unless and answer.code == unless:
            return False
        raise _refused(asked, answer)

    async def look(self, asked: Asked) -> Answer | None:
        """Send a request that reads. Return its answer; None = there is no such thing.

        Raises: SetupError when it is refused for another reason.
        """
        answer = await self.ask(asked)
        if answer.status == _NOT_FOUND:
            return None
        if answer.status < _FAILED:
            return answer
        raise _refused(asked, answer)


def _refused(asked: Asked, answer: Answer) -> SetupError:
    target = asked.target.partition("?")[0]
    return SetupError(
        f"{asked.service.value} service, {asked.account}{target}: the server refuses it: "
        f"{answer.status} {answer.code} {answer.reason}"
    )
