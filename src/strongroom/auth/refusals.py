"""The refusals of authentication that carry a detail, in the element that clients read it from.

Lives here: construction of errors only. Source: "Azure Storage REST error codes";
`AuthenticationErrorDetail` is the element that the service adds to AuthenticationFailed.
"""

from __future__ import annotations

from strongroom.errors import AUTHENTICATION_FAILED, INVALID_AUTHENTICATION_INFO, StorageError


def authentication_failed(detail: str) -> StorageError:
    """403 AuthenticationFailed with `detail`, which says what did not hold."""
    return StorageError(AUTHENTICATION_FAILED, None, (("AuthenticationErrorDetail", detail),))


def invalid_authentication_info(detail: str) -> StorageError:
    """400 InvalidAuthenticationInfo with `detail`, which says what cannot be read."""
    return StorageError(INVALID_AUTHENTICATION_INFO, None, (("AuthenticationErrorDetail", detail),))
