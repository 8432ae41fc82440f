"""The errors of authentication, with the detail in the element where clients expect it.

Source: "Azure Storage REST error codes"; `AuthenticationErrorDetail` is the element that the
service adds to AuthenticationFailed. Source of the challenge: RFC 9110, section 11.6.1, and
"Authorize with Microsoft Entra ID".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors.core import (
    AUTHENTICATION_FAILED,
    INVALID_AUTHENTICATION_INFO,
    INVALID_TOKEN,
    StorageError,
)

STORAGE_AUDIENCE: Final = "https://storage.azure.com"
_ENTRA: Final = ("https://sts.windows.net/", "https://login.microsoftonline.com/")


def authentication_failed(detail: str) -> StorageError:
    """403; `detail` names the failed check."""
    return StorageError(AUTHENTICATION_FAILED, None, (("AuthenticationErrorDetail", detail),))


def invalid_authentication_info(detail: str) -> StorageError:
    """400; `detail` names the malformed part."""
    return StorageError(INVALID_AUTHENTICATION_INFO, None, (("AuthenticationErrorDetail", detail),))


def invalid_token(detail: str, challenge: str) -> StorageError:
    """401 InvalidAuthenticationInfo; `challenge` says where to get another token."""
    extras = (("AuthenticationErrorDetail", detail),)
    return StorageError(INVALID_TOKEN, None, extras, (("WWW-Authenticate", challenge),))


def challenge(issuer: str | None, tenant: str | None, audience: str) -> str:
    """The value of WWW-Authenticate. Clients take the tenant from the first part of its path.

    Arguments:
        issuer: the claim `iss` of accepted tokens. If it is not Entra, clients are referred to it.
        audience: the audience that a token must have.
    """
    where = issuer
    for start in _ENTRA:
        if issuer is None or issuer.startswith(start):
            named = (issuer or "").removeprefix(start).partition("/")[0]
            name = tenant or named or "common"
            where = f"https://login.microsoftonline.com/{name}/oauth2/authorize"
    return f"Bearer authorization_uri={where} resource_id={audience}"


CHALLENGE: Final = challenge(None, None, STORAGE_AUDIENCE)
"""The challenge of a server that accepts no bearer tokens."""
