"""The signers of the tests of auth: an HMAC of their own, and the official SDK's."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import quote

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, Account
from strongroom.auth.authenticate import authenticate
from strongroom.auth.claims import Claim, SharedKeyClaim
from strongroom.auth.request import Service, Target
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.times import parse_rfc1123
from strongroom.wire.core.http import Headers, Request

NAME = "devstoreaccount1"
KEY = DEVELOPMENT_ACCOUNT_KEY
SECOND_KEY = base64.b64encode(b"the second key of the account").decode()
ACCOUNT = Account(NAME, (base64.b64decode(KEY), base64.b64decode(SECOND_KEY)))
DATE = "Fri, 26 Jun 2015 23:39:12 GMT"
NOW = parse_rfc1123(DATE) or 0
BLOB = Target(Service.BLOB, NAME, "c1", "b1")
CONTAINER = Target(Service.BLOB, NAME, "c1")


class OneAccount:
    """Accounts with ACCOUNT only."""

    def get(self, name: str) -> Account | None:
        return ACCOUNT if name == NAME else None


class NoBody:
    """A body that is not read."""

    size_bytes: int | None = 0
    is_held_back = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise AssertionError("auth reads no body")

    async def read_all(self, max_bytes: int) -> bytes:
        raise AssertionError("auth reads no body")


def request(method: str, target: str, fields: Iterable[tuple[str, str]] = ()) -> Request:
    """Return a request as the HTTP server makes it."""
    return Request(method, target, Headers(fields), NoBody())


def signature(text: str | bytes, key: str = KEY) -> str:
    """Return base64(HMAC-SHA256(key, text)), by the standard library."""
    message = text.encode() if isinstance(text, str) else text
    digest = hmac.new(base64.b64decode(key), message, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def sdk_authorization(
    method: str, url: str, headers: dict[str, str], key: str = KEY, account: str = NAME
) -> str:
    """Return the Authorization header that azure-storage-blob would send."""
    policy: Any = SharedKeyCredentialPolicy
    message = HttpRequest(method, url, headers=headers)
    wrapped: Any = PipelineRequest(message, PipelineContext(None))
    policy(account, key).on_request(wrapped)
    value: str = message.headers["Authorization"]
    return value


def is_owner(claim: Claim) -> bool:
    """Whether the account's own key signed the request."""
    return isinstance(claim, SharedKeyClaim) and claim.account == NAME


def token(**fields: str) -> str:
    """Return a query of these SAS parameters; the caller adds `sig`."""
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


def claim_of(sent: Request, target: Target = BLOB, now: int = NOW) -> Claim:
    """Return the claim of a request by authenticate() with ACCOUNT."""
    return authenticate(sent, target, OneAccount(), now)


def refused(caught: pytest.ExceptionInfo[StorageError], row: ErrorCode) -> str:
    """Check that the refusal is `row`, and return its detail or, without one, its message."""
    assert caught.value.row == row
    return dict(caught.value.extras).get("AuthenticationErrorDetail", caught.value.message)
