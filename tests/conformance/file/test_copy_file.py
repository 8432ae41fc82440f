"""Copy File and Abort Copy File over HTTP: rules F-CPY-01 to F-CPY-13."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareClient,
    ShareFileClient,
    ShareSasPermissions,
    generate_file_sas,
    generate_share_sas,
)

from tests.conformance.answer import GUID, Answer, expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import abort, copy, ended, readable
from tests.conformance.file.test_file_access import expiry
from tests.conformance.running import Running
from tests.conformance.sources import HOST, Source, Sources

DATA = b"0123456789"
CREATE = {"x-ms-type": "file", "x-ms-content-length": "10"}
SDDL = "O:SYG:SYD:(A;;FA;;;SY)"
NOT_IT = "CannotVerifyCopySource"


def file_of(files: Client, target: str, headers: dict[str, str] | None = None) -> str:
    """A new file with ten digits."""
    expect(files.put(target, {**CREATE, **(headers or {})}), 201)
    put = {"x-ms-write": "update", "x-ms-range": "bytes=0-9"}
    expect(files.put(f"{target}?comp=range", put, DATA), 201)
    return target


def copied(
    client: Client,
    source: str,
    target: str,
    headers: dict[str, str] | None = None,
    *,
    seen_by: Client | None = None,
) -> Answer:
    """Copy a file to its end, which a busy server may reach after its answer."""
    made = expect(copy(client, source, target, headers), 202)
    ended(seen_by or client, target.partition("?")[0])
    return made


@pytest.fixture
def file(files: Client, share: str) -> str:
    """The target of a new file with ten digits."""
    return file_of(files, f"/{share}/f")


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    """Another server."""
    with Sources() as found:
        yield found


@pytest.fixture(scope="module")
def copying_files() -> Iterator[Client]:
    """A client of the shares of a server that may copy from this machine."""
    running = Running(copy_source_hosts=(HOST,))
    found = running.files()
    yield found
    found.close()
    running.stop()


@pytest.fixture
def there(copying_files: Client, new_name: Callable[[], str]) -> str:
    """A new share of that server."""
    name = new_name()
    expect(copying_files.put(f"/{name}?restype=share"), 201)
    return name


def test_a_file_is_copied(files: Client, share: str) -> None:
    """F-CPY-01, F-CPY-05, F-CPY-09."""
    given = {"x-ms-meta-of": "ann", "x-ms-content-type": "text/css", "x-ms-cache-control": "none"}
    source = files.url + file_of(files, f"/{share}/f", given)
    made = copied(files, source, f"/{share}/g")
    assert GUID.fullmatch(made["x-ms-copy-id"]) and made.etag and made["Last-Modified"]
    seen = expect(files.head(f"/{share}/g"), 200)
    assert (seen["x-ms-copy-id"], seen["x-ms-copy-source"]) == (made["x-ms-copy-id"], source)
    assert (seen["x-ms-copy-progress"], seen["x-ms-copy-status"]) == ("10/10", "success")
    assert seen["x-ms-copy-completion-time"] and seen.etag
    assert (seen["x-ms-meta-of"], seen["Content-Type"]) == ("ann", "text/css")
    assert seen["Cache-Control"] == "none"
    assert expect(files.get(f"/{share}/g"), 200).body == DATA
    copied(files, source, f"/{share}/g", {"x-ms-meta-by": "bob"})
    seen = files.head(f"/{share}/g")
    assert (seen.get("x-ms-meta-of"), seen["x-ms-meta-by"]) == (None, "bob")


def test_what_ends_the_headers_of_a_copy(files: Client, share: str, file: str) -> None:
    """F-CPY-09."""
    for query, headers in (("", CREATE), ("?comp=properties", {"x-ms-content-type": "a/b"})):
        copied(files, files.url + file, f"/{share}/g")
        expect(files.put(f"/{share}/g?comp=metadata", {"x-ms-meta-a": "b"}), 200)
        assert files.head(f"/{share}/g")["x-ms-copy-id"]
        files.put(f"/{share}/g{query}", headers)
        assert files.head(f"/{share}/g").get("x-ms-copy-id") is None


def test_blobs_become_files_and_files_blobs(
    client: Client, container: str, files: Client, share: str
) -> None:
    """F-CPY-01."""
    given = {**PUT_BLOB, "x-ms-meta-of": "ann", "x-ms-blob-content-type": "text/css"}
    expect(client.put(f"/{container}/b", given, DATA), 201)
    copied(files, f"{client.url}/{container}/b", f"/{share}/g")
    seen = files.get(f"/{share}/g")
    assert (seen.body, seen["x-ms-meta-of"], seen["Content-Type"]) == (DATA, "ann", "text/css")
    made = expect(copy(client, f"{files.url}/{share}/g", f"/{container}/c"), 202)
    assert made["x-ms-copy-status"] == "success"
    seen = client.get(f"/{container}/c")
    assert (seen.body, seen["x-ms-meta-of"], seen["x-ms-blob-type"]) == (DATA, "ann", "BlockBlob")
    staged = {"x-ms-copy-source": readable(client, f"{files.url}/{share}/g")}
    staged["x-ms-source-range"] = "bytes=2-4"
    expect(client.put(f"/{container}/d?comp=block&blockid=MQ==", staged), 201)


def test_what_copy_file_refuses(files: Client, share: str, file: str) -> None:
    """F-CPY-03, F-CPY-10, F-CPY-11, F-CPY-12."""
    expect(files.put(f"/{share}/d?restype=directory"), 201)
    source, target = files.url + file, f"/{share}/g"
    mode = "x-ms-file-permission-copy-mode"
    key = "x-ms-file-permission-key"
    cases: tuple[tuple[str, str, dict[str, str], int, str], ...] = (
        (f"{files.url}/{share}/none", target, {}, 404, NOT_IT),
        (f"{files.url}/{share}/d", target, {}, 404, NOT_IT),
        (f"{files.url}/{share}/no/f", target, {}, 404, NOT_IT),
        (f"{files.url}/nosuchshare/f", target, {}, 404, NOT_IT),
        (f"{files.url}/{share}", target, {}, 404, NOT_IT),
        (f"{files.url}/{share}/a%3Fb", target, {}, 404, NOT_IT),
        ("here", target, {}, 400, "InvalidHeaderValue"),
        ("http://[", target, {}, 400, "InvalidHeaderValue"),
        ("file:///etc/passwd", target, {}, 400, "InvalidHeaderValue"),
        (f"{source}%zz", target, {}, 400, "InvalidHeaderValue"),
        ("http://" + "a" * 2048, target, {}, 400, "InvalidHeaderValue"),
        (f"{source}?sharesnapshot=2026-01-01T00:00:00.0000000Z", target, {}, 404, NOT_IT),
        (f"{source}?sharesnapshot=yesterday", target, {}, 404, NOT_IT),
        (source, f"/{share}/d", {}, 409, "ResourceTypeMismatch"),
        (source, f"/{share}/no/g", {}, 404, "ParentNotFound"),
        (source, "/nosuchshare/g", {}, 404, "ShareNotFound"),
        (source, target, {"x-ms-file-attributes": "Wet"}, 400, "InvalidHeaderValue"),
        (source, target, {"x-ms-file-creation-time": "soon"}, 400, "InvalidHeaderValue"),
        (source, target, {"x-ms-file-copy-set-archive": "x"}, 400, "InvalidHeaderValue"),
        (source, target, {"x-ms-file-copy-ignore-readonly": "x"}, 400, "InvalidHeaderValue"),
        (source, target, {mode: "both"}, 400, "InvalidHeaderValue"),
        (source, target, {mode: "override"}, 400, "InvalidHeaderValue"),
        (source, target, {mode: "source", key: "1*1"}, 400, "InvalidHeaderValue"),
        (source, target, {mode: "override", key: "1*1"}, 400, "FileInvalidPermissionKey"),
    )
    for url, to, headers, status, code in cases:
        expect(copy(files, url, to, headers), status, code)
    expect(files.put(target, {"x-ms-copy-source": source}, b"body"), 400, "InvalidHeaderValue")
    expect(files.head(target), 404, "ResourceNotFound")


def test_smb_properties_of_the_source(files: Client, share: str) -> None:
    """F-CPY-11."""
    times = {
        "x-ms-file-creation-time": "2001-02-03T04:05:06.1234567Z",
        "x-ms-file-last-write-time": "2002-02-03T04:05:06.0000000Z",
        "x-ms-file-change-time": "2003-02-03T04:05:06.0000000Z",
    }
    given = {**CREATE, **times, "x-ms-file-attributes": "Hidden | ReadOnly"}
    expect(files.put(f"/{share}/f", given), 201)
    source, target = f"{files.url}/{share}/f", f"/{share}/g"
    every = dict.fromkeys((*times, "x-ms-file-attributes"), "source")
    copied(files, source, target, every)
    seen = files.head(target)
    assert seen["x-ms-file-attributes"] == files.head(f"/{share}/f")["x-ms-file-attributes"]
    assert {name: seen[name] for name in times} == times
    copied(files, source, f"/{share}/h")
    seen = files.head(f"/{share}/h")
    assert seen["x-ms-file-attributes"] == "Archive"
    assert all(seen[name] != value for name, value in times.items())
    for attributes, archive, expected in (
        ("Hidden", "", "Hidden"),
        ("Hidden", "true", "Hidden | Archive"),
        ("None", "", "None"),
        ("", "false", "None"),
        ("Archive", "false", "None"),
        ("source", "false", "ReadOnly | Hidden"),
    ):
        headers = {"x-ms-file-copy-ignore-readonly": "true"}
        if attributes:
            headers["x-ms-file-attributes"] = attributes
        if archive:
            headers["x-ms-file-copy-set-archive"] = archive
        copied(files, source, f"/{share}/i", headers)
        assert files.head(f"/{share}/i")["x-ms-file-attributes"] == expected


def test_what_no_blob_has_does_not_come_from_one(
    client: Client, blob: str, files: Client, share: str
) -> None:
    """F-CPY-11, F-CPY-12."""
    source = f"{client.url}/{blob}/b"
    for name in (
        "x-ms-file-attributes",
        "x-ms-file-creation-time",
        "x-ms-file-permission-copy-mode",
    ):
        refused = copy(files, source, f"/{share}/g", {name: "source"})
        expect(refused, 400, "InvalidHeaderValue")
    expect(files.head(f"/{share}/g"), 404, "ResourceNotFound")


def test_the_permission_of_a_copy(files: Client, share: str, new_name: Callable[[], str]) -> None:
    """F-CPY-12."""
    source = files.url + file_of(files, f"/{share}/f", {"x-ms-file-permission": SDDL})
    key, mode = "x-ms-file-permission-key", "x-ms-file-permission-copy-mode"
    own = files.head(f"/{share}/f")[key]
    other = new_name()
    expect(files.put(f"/{other}?restype=share"), 201)
    copied(files, source, f"/{other}/g", {mode: "source"})
    assert files.head(f"/{other}/g")[key] == own
    found = files.get(f"/{other}?restype=share&comp=filepermission", {key: own})
    assert SDDL.encode() in expect(found, 200).body, "the other share knows it too"
    copied(files, source, f"/{other}/h")
    assert files.head(f"/{other}/h")[key] != own
    text = "O:BAG:BAD:(A;;FA;;;BA)"
    copied(files, source, f"/{other}/i", {mode: "override", "x-ms-file-permission": text})
    assert files.head(f"/{other}/i")[key] not in (own, files.head(f"/{other}/h")[key])


def test_a_read_only_target(files: Client, share: str, file: str) -> None:
    """F-CPY-13."""
    expect(files.put(f"/{share}/g", {**CREATE, "x-ms-file-attributes": "ReadOnly"}), 201)
    source, target = files.url + file, f"/{share}/g"
    expect(copy(files, source, target), 412, "ReadOnlyAttribute")
    ignored = {"x-ms-file-copy-ignore-readonly": "true"}
    copied(files, source, target, ignored)
    assert (files.get(target).body, files.head(target)["x-ms-file-attributes"]) == (DATA, "Archive")


def test_a_leased_target_needs_its_lease(files: Client, share: str, file: str) -> None:
    """F-CPY-03, F-LSF-02."""
    expect(files.put(f"/{share}/g", CREATE), 201)
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease = expect(files.put(f"/{share}/g?comp=lease", acquire), 201)["x-ms-lease-id"]
    source, target = files.url + file, f"/{share}/g"
    expect(copy(files, source, target), 412, "LeaseIdMissing")
    other = {"x-ms-lease-id": "00000000-0000-0000-0000-000000000001"}
    expect(copy(files, source, target, other), 412, "LeaseIdMismatchWithFileOperation")
    before = files.head(target)
    copied(files, source, target, {"x-ms-lease-id": lease})
    seen = files.head(target)
    assert (seen["x-ms-lease-state"], seen["x-ms-file-id"]) == ("leased", before["x-ms-file-id"])
    assert seen["x-ms-file-creation-time"] == before["x-ms-file-creation-time"]


def test_who_may_copy_what(files: Client, share: str, file: str) -> None:
    """F-CPY-03, F-CPY-10."""
    key = files.credential.key

    def token(**letters: bool) -> str:
        return generate_share_sas(
            files.account, share, key, ShareSasPermissions(**letters), expiry=expiry()
        )

    reads = generate_file_sas(
        files.account, share, ["f"], key, FileSasPermissions(read=True), expiry=expiry()
    )
    anonymous, source = files.anonymous, files.url + file
    creates = f"/{share}/g?{token(create=True)}"
    refused = expect(copy(anonymous, source, creates), 401, NOT_IT)
    assert refused["x-ms-copy-source-status-code"] == "401"
    assert refused["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    expect(copy(anonymous, f"{source}?{token(write=True)}", creates), 403, NOT_IT)
    copied(anonymous, f"{source}?{reads}", creates, seen_by=files)
    assert files.head(f"/{share}/g")["x-ms-copy-source"] == source, "without the token"
    refused = copy(anonymous, f"{source}?{reads}", creates)
    expect(refused, 403, "AuthorizationPermissionMismatch")
    copied(anonymous, f"{source}?{reads}", f"/{share}/g?{token(write=True)}", seen_by=files)
    expect(copy(anonymous, f"{source}?{reads}", f"/{share}/g?{token(read=True)}"), 403,
           "AuthorizationPermissionMismatch")  # fmt: skip
    anonymous.close()


def test_another_account_needs_a_token(
    files: Client, share: str, file: str, file_account: Client
) -> None:
    """F-CPY-10."""
    expect(file_account.put("/mine?restype=share"), 201)
    expect(copy(file_account, files.url + file, "/mine/g"), 401, NOT_IT)
    reads = generate_file_sas(
        files.account,
        share,
        ["f"],
        files.credential.key,
        FileSasPermissions(read=True),
        expiry=expiry(),
    )
    copied(file_account, f"{files.url}{file}?{reads}", "/mine/g")
    assert file_account.get("/mine/g").body == DATA


def test_dots_at_the_end_of_a_source(files: Client, share: str) -> None:
    """F-CPY-01, F-NAM-02."""
    dots = {"x-ms-allow-trailing-dot": "true"}
    file_of(files, f"/{share}/f")
    expect(files.put(f"/{share}/f.", {**CREATE, **dots}), 201)
    source = f"{files.url}/{share}/f."
    copied(files, source, f"/{share}/g.")
    assert files.get(f"/{share}/g").body == DATA
    expect(copy(files, source, f"/{share}/h", {"x-ms-source-allow-trailing-dot": "true"}), 202)
    ended(files, f"/{share}/h")
    assert files.get(f"/{share}/h").body == bytes(10)
    expect(copy(files, f"{files.url}/{share}/f", f"/{share}/h.", dots), 202)
    expect(files.head(f"/{share}/h.", dots), 200)


def pending(files: Client, sources: Sources, target: str) -> Answer:
    """Begin a copy whose source does not come to its end until it is released."""
    held = sources.add(target, Source(bytes(9 << 20), held=True))
    begun = expect(copy(files, held, target), 202)
    assert begun["x-ms-copy-status"] == "pending"
    return begun


def test_a_pending_copy_refuses_writes_and_shows_its_progress(
    copying_files: Client, sources: Sources, there: str
) -> None:
    """F-CPY-04, F-CPY-05, F-CPY-06, F-CPY-09."""
    files, target = copying_files, f"/{there}/g"
    file_of(files, f"/{there}/f")
    begun = pending(files, sources, target)
    rename = {"x-ms-file-rename-source": f"{files.url}{target}"}
    over = {
        "x-ms-file-rename-source": f"{files.url}/{there}/f",
        "x-ms-file-rename-replace-if-exists": "true",
    }
    put = {"x-ms-write": "update", "x-ms-range": "bytes=0-9"}
    clear = {"x-ms-write": "clear", "x-ms-range": "bytes=0-9"}
    source = f"{files.url}/{there}/f"
    from_url = {**put, "x-ms-copy-source": source, "x-ms-source-range": "bytes=0-9"}
    for refused in (
        files.put(target, CREATE),
        files.put(f"{target}?comp=range", put, DATA),
        files.put(f"{target}?comp=range", clear),
        files.put(f"{target}?comp=range", from_url),
        files.put(f"{target}?comp=properties", {"x-ms-content-length": "5"}),
        files.put(f"{target}?comp=properties", {"x-ms-content-type": "a/b"}),
        files.put(f"{target}?comp=metadata", {"x-ms-meta-a": "b"}),
        files.delete(target),
        copy(files, source, target),
        files.put(f"/{there}/h?comp=rename", rename),
        files.put(f"{target}?comp=rename", over),
    ):
        expect(refused, 409, "PendingCopyOperation")
    seen = expect(files.head(target), 200)
    assert (seen["x-ms-copy-status"], seen["Content-Length"]) == ("pending", "0")
    assert seen.get("x-ms-copy-completion-time") is None
    assert seen["x-ms-copy-progress"].endswith(f"/{9 << 20}")
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease = expect(files.put(f"{target}?comp=lease", acquire), 201)["x-ms-lease-id"]
    copy_id = begun["x-ms-copy-id"]
    expect(abort(files, target, copy_id), 412, "LeaseIdMissing")
    leased = {"x-ms-copy-action": "abort", "x-ms-lease-id": lease}
    other = files.put(f"{target}?comp=copy&copyid={'0' * 8}", leased)
    expect(other, 409, "CopyIdMismatch")
    expect(files.put(f"{target}?comp=copy&copyid={copy_id}", leased), 204)
    again = files.put(f"{target}?comp=copy&copyid={copy_id}", leased)
    expect(again, 409, "NoPendingCopyOperation")
    seen = files.head(target)
    assert (seen["x-ms-copy-status"], seen["Content-Length"]) == ("aborted", "0")
    expect(files.put(f"{target}?comp=properties",
                     {"x-ms-content-length": "9", "x-ms-lease-id": lease}), 200)  # fmt: skip
    assert files.get(target).body == bytes(9)


def test_what_abort_needs(files: Client, share: str, file: str) -> None:
    """F-CPY-06."""
    expect(abort(files, file, "1"), 409, "NoPendingCopyOperation")
    action = {"x-ms-copy-action": "abort"}
    expect(files.put(f"{file}?comp=copy", action), 400, "MissingRequiredQueryParameter")
    expect(abort(files, f"/{share}/none", "1"), 404, "ResourceNotFound")


def test_a_source_elsewhere(copying_files: Client, sources: Sources, there: str) -> None:
    """F-CPY-01, F-CPY-05, F-CPY-07."""
    headers = (("Content-Type", "text/theirs"), ("x-ms-meta-not", "metadata"))
    source = sources.add("/whole", Source(DATA * 1000, headers))
    copied(copying_files, source, f"/{there}/g")
    seen = copying_files.get(f"/{there}/g")
    assert (seen.body, seen["Content-Type"]) == (DATA * 1000, "text/theirs")
    assert seen.get("x-ms-meta-not") is None
    broken = sources.add("/broken", Source(b"abc", announced=10))
    expect(copy(copying_files, broken, f"/{there}/g"), 202)
    seen = ended(copying_files, f"/{there}/g")
    assert (seen["x-ms-copy-status"], seen["Content-Length"]) == ("failed", "0")
    assert seen["x-ms-copy-status-description"]


def test_a_host_that_may_not_be_asked(files: Client, share: str, sources: Sources) -> None:
    """F-CPY-10."""
    expect(copy(files, sources.add("/x", Source(DATA)), f"/{share}/g"), 403, NOT_IT)
    expect(files.head(f"/{share}/g"), 404, "ResourceNotFound")


def test_the_sdk_copies_and_aborts(copying_files: Client, sources: Sources, there: str) -> None:
    """F-CPY-01, F-CPY-06."""
    files = copying_files
    share = ShareClient(files.url, there, credential=files.credential.key, retry_total=0)
    source = share.get_file_client("f")
    source.upload_file(DATA, metadata={"of": "ann"}, file_attributes="Hidden")
    target: ShareFileClient = share.get_file_client("g")
    made = target.start_copy_from_url(
        source.url, file_attributes="source", set_archive_attribute=True
    )
    ended(files, f"/{there}/g")
    seen = target.get_file_properties()
    assert (seen.copy.id, seen.copy.status, seen.copy.progress) == (
        made["copy_id"],
        "success",
        "10/10",
    )
    assert seen.metadata == {"of": "ann"} and seen.file_attributes == "Hidden | Archive"
    assert target.download_file().readall() == DATA
    with pytest.raises(HttpResponseError) as none:
        target.abort_copy(made["copy_id"])
    assert vars(none.value)["error_code"] == "NoPendingCopyOperation"
    held = sources.add("/held", Source(bytes(9 << 20), held=True))
    begun = target.start_copy_from_url(held)
    assert begun["copy_status"] == "pending"
    target.abort_copy(begun["copy_id"])
    assert target.get_file_properties().copy.status == "aborted"


def test_a_copy_of_many_pieces_ends(files: Client, share: str) -> None:
    """F-CPY-02, F-CPY-05."""
    size = {"x-ms-type": "file", "x-ms-content-length": str(1 << 40)}
    expect(files.put(f"/{share}/f", size), 201)
    for at in (5, 1 << 30, (1 << 40) - 10):
        put = {"x-ms-write": "update", "x-ms-range": f"bytes={at}-{at + 9}"}
        expect(files.put(f"/{share}/f?comp=range", put, DATA), 201)
    expect(copy(files, f"{files.url}/{share}/f", f"/{share}/g"), 202)
    seen = ended(files, f"/{share}/g")
    assert (seen["x-ms-copy-status"], seen["Content-Length"]) == ("success", str(1 << 40))
    listed = [files.get(f"/{share}/{name}?comp=rangelist").body for name in "fg"]
    assert listed[0] == listed[1]
    part = files.get(f"/{share}/g", {"x-ms-range": f"bytes={(1 << 40) - 12}-"})
    assert part.body == bytes(2) + DATA


def test_an_archived_blob_does_not_become_a_file(
    client: Client, blob: str, files: Client, share: str
) -> None:
    """F-CPY-01."""
    expect(client.put(f"/{blob}/b?comp=tier", {"x-ms-access-tier": "Archive"}), 200)
    source = f"{client.url}/{blob}/b"
    refused = expect(copy(files, source, f"/{share}/g"), 409, "BlobArchived")
    assert refused["x-ms-copy-source-error-code"] == "BlobArchived"
    expect(files.head(f"/{share}/g"), 404, "ResourceNotFound")


@pytest.mark.parametrize("path", ["%E9", "%zz", "%ED%A0%80"])
def test_a_url_that_is_no_utf8_is_a_bad_header(files: Client, share: str, path: str) -> None:
    """F-REN-06, F-CPY-10."""
    source = f"{files.url}/{share}/{path}"
    renamed = files.put(f"/{share}/g?comp=rename", {"x-ms-file-rename-source": source})
    expect(renamed, 400, "InvalidHeaderValue")
    expect(copy(files, source, f"/{share}/g"), 400, "InvalidHeaderValue")
