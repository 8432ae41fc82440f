"""Access to shares and files: account SAS and service SAS."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.fileshare import (
    AccountSasPermissions,
    FileSasPermissions,
    ResourceTypes,
    ShareSasPermissions,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)

from tests.conformance.answer import expect
from tests.conformance.client import Client


def expiry() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.parametrize(
    ("types", "letters", "code"),
    [
        ({"container": True}, {"read": True}, None),
        ({"object": True}, {"read": True}, "AuthorizationResourceTypeMismatch"),
        ({"container": True}, {"write": True}, "AuthorizationPermissionMismatch"),
    ],
)
def test_an_account_sas_needs_type_and_letter(
    files: Client, share: str, types: dict[str, bool], letters: dict[str, bool], code: str | None
) -> None:
    """F-SVC-03."""
    token = generate_account_sas(
        files.account,
        files.credential.key,
        ResourceTypes(**types),
        AccountSasPermissions(**letters),
        expiry(),
    )
    answer = files.anonymous.get(f"/{share}?restype=share&{token}")
    expect(answer, 403 if code else 200, code)


def test_a_token_of_a_share_does_not_reach_the_share_itself(files: Client, share: str) -> None:
    """F-SHR-10."""
    everything = ShareSasPermissions(read=True, write=True, delete=True, list=True, create=True)
    token = generate_share_sas(
        files.account, share, files.credential.key, everything, expiry=expiry()
    )
    target = f"/{share}?restype=share"
    anonymous = files.anonymous
    expect(anonymous.get(f"{target}&{token}"), 403, "AuthorizationFailure")
    expect(anonymous.put(f"{target}&comp=metadata&{token}"), 403, "AuthorizationFailure")
    expect(anonymous.delete(f"{target}&{token}"), 403, "AuthorizationFailure")
    anonymous.close()


def test_a_rename_needs_a_token_for_the_share(files: Client, share: str) -> None:
    """F-REN-06."""
    expect(files.put(f"/{share}/f", {"x-ms-type": "file", "x-ms-content-length": "1"}), 201)
    key, named = files.credential.key, {"x-ms-file-rename-source": f"{files.url}/{share}/f"}
    one = generate_file_sas(
        files.account, share, ["g"], key, FileSasPermissions(write=True), expiry=expiry()
    )
    every = generate_share_sas(
        files.account, share, key, ShareSasPermissions(write=True), expiry=expiry()
    )
    anonymous = files.anonymous
    target = f"/{share}/g?comp=rename"
    expect(anonymous.put(f"{target}&{one}", named), 403, "AuthorizationFailure")
    expect(anonymous.put(f"{target}&{every}", named), 200)
    expect(files.head(f"/{share}/g"), 200)
    anonymous.close()


def test_a_token_that_only_creates_does_not_overwrite(files: Client, share: str) -> None:
    """F-FIL-02."""
    token = generate_share_sas(
        files.account,
        share,
        files.credential.key,
        ShareSasPermissions(create=True),
        expiry=expiry(),
    )
    anonymous, create = files.anonymous, {"x-ms-type": "file", "x-ms-content-length": "1"}
    expect(anonymous.put(f"/{share}/f?{token}", create), 201)
    refused = anonymous.put(f"/{share}/f?{token}", create)
    expect(refused, 403, "AuthorizationPermissionMismatch")
    anonymous.close()
