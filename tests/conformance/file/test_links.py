"""Links over REST on a share for SMB: rule F-LNK-01."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareSasPermissions, ShareServiceClient, generate_share_sas

from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.conformance.file.test_file_access import expiry

NO_TIME = "2020-01-01T00:00:00.0000000Z"
CREATE = {"x-ms-type": "file", "x-ms-content-length": "1"}
REFUSED = (400, "UnsupportedQueryParameter")


@pytest.mark.parametrize("name", ["f", "new", "d/new"])
def test_links_are_refused_on_a_share_for_smb(files: Client, share: str, name: str) -> None:
    """F-LNK-01."""
    expect(files.put(f"/{share}/f", CREATE), 201)
    target = f"/{share}/{name}?restype="
    text, file = {"x-ms-link-text": "f"}, {"x-ms-type": "file", "x-ms-file-target-file": "/f"}
    answer = expect(files.put(f"{target}symboliclink", text), *REFUSED)
    assert b"NFS" in answer.body
    expect(files.put(f"{target}symboliclink"), *REFUSED)
    expect(files.put(f"{target}hardlink", file), *REFUSED)
    expect(files.get(f"{target}symboliclink"), *REFUSED)
    listed = expect(files.get(f"/{share}?restype=directory&comp=list"), 200).xml
    assert [one.findtext("Name") for one in listed.iter("File")] == ["f"]


def test_what_a_link_is_refused_for_before(files: Client, share: str) -> None:
    """F-LNK-01."""
    expect(files.put("/nosuchshare/f?restype=symboliclink"), 404, "ShareNotFound")
    expect(files.get("/nosuchshare/f?restype=symboliclink"), 404, "ShareNotFound")
    expect(files.put("/nosuchshare/f?restype=hardlink"), 404, "ShareNotFound")
    at = f"/{share}/f?restype=symboliclink&sharesnapshot="
    expect(files.get(at + NO_TIME), 404, "ShareSnapshotNotFound")
    expect(files.get(at + "yesterday"), 400, "InvalidQueryParameterValue")
    token = generate_share_sas(
        files.account, share, files.credential.key, ShareSasPermissions(read=True), expiry=expiry()
    )
    reader = files.anonymous
    denied = (403, "AuthorizationPermissionMismatch")
    expect(reader.put(f"/{share}/f?restype=symboliclink&{token}"), *denied)
    expect(reader.put(f"/{share}/f?restype=hardlink&{token}"), *denied)
    expect(reader.get(f"/{share}/f?restype=symboliclink&{token}"), *REFUSED)


def test_the_sdk_shows_why_links_are_refused(file_account: Client) -> None:
    """F-LNK-01."""
    shares = ShareServiceClient(file_account.url, credential=file_account.credential.key)
    share = shares.create_share("links")
    file = share.get_file_client("f")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: file.create_symlink("target"),
        lambda: file.create_hardlink("target"),
        file.get_symlink,
    )
    for attempt in attempts:
        with pytest.raises(HttpResponseError, match="UnsupportedQueryParameter") as refused:
            attempt()
        assert refused.value.status_code == 400
    share.delete_share()
