"""Copies of files into blobs: rule B-CPY-19."""

from __future__ import annotations

import pytest
from azure.storage.fileshare import FileSasPermissions, ShareFileClient, generate_file_sas

from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import block_list, block_target, body
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, readable, source_url
from tests.conformance.file.test_file_access import expiry
from tests.conformance.running import Running

CONTENT = b"the content of a file" * 50


@pytest.fixture
def source(server: Running, account: Client) -> str:
    """The URL of a file of the account, which has a container `box` too."""
    files = Client(server.file_port, account.credential)
    expect(files.put("/share?restype=share"), 201)
    credential = {"account_name": account.account, "account_key": account.credential.key}
    sdk = ShareFileClient(files.url, "share", "f.txt", credential=credential, retry_total=0)
    sdk.upload_file(CONTENT, metadata={"kept": "yes"})
    expect(account.put("/box?restype=container"), 201)
    return source_url(files, "/share/f.txt")


def from_url(client: Client, source: str) -> Answer:
    return copy(client, source, "/box/b", PUT_BLOB)


def block(client: Client, source: str) -> Answer:
    staged = client.put(block_target("/box/b", "1"), {"x-ms-copy-source": readable(client, source)})
    if staged.status != 201:
        return staged
    return client.put("/box/b?comp=blocklist", body=block_list("1"))


FORMS = {
    "copy": lambda client, source: copy(client, source, "/box/b"),
    "sync": lambda client, source: copy(client, source, "/box/b", SYNC),
    "url": from_url,
    "block": block,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_becomes_a_block_blob(account: Client, source: str, form: str) -> None:
    """B-CPY-19."""
    assert FORMS[form](account, source).status in (201, 202)
    assert body(account, "/box/b") == CONTENT
    found = expect(account.head("/box/b"), 200)
    assert found["x-ms-blob-type"] == "BlockBlob"
    if form != "block":
        assert found["x-ms-meta-kept"] == "yes"


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_not_there(account: Client, source: str, form: str) -> None:
    """B-CPY-19, B-CPY-09."""
    expect(FORMS[form](account, f"{source}.none"), 404, "CannotVerifyCopySource")


@pytest.mark.parametrize("form", FORMS)
def test_another_account_needs_a_token_of_the_file(
    server: Running, account: Client, source: str, form: str
) -> None:
    """B-CPY-19: with the permission to read."""
    other = server.account()
    expect(other.put("/box?restype=container"), 201)
    key = account.credential.key
    for letters, is_read in (({}, False), ({"write": True}, False), ({"read": True}, True)):
        url = source
        if letters:
            permission = FileSasPermissions(**letters)
            token = generate_file_sas(
                account.account, "share", ["f.txt"], key, permission=permission, expiry=expiry()
            )
            url = f"{source}?{token}"
        answer = FORMS[form](other, url)
        if is_read:
            assert answer.status in (201, 202)
            assert body(other, "/box/b") == CONTENT
        else:
            status = 403 if letters else 401
            assert (answer.status, answer.code) == (status, "CannotVerifyCopySource")
