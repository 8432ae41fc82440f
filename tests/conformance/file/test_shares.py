"""Shares over HTTP: creation, deletion, properties, policies, lists and leases."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names, metadata, texts
from tests.conformance.client import Client
from tests.conformance.running import Running

A, B = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
ACL = b"""<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>
<Permission>rl</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"""


def lease(files: Client, share: str, action: str, **headers: str) -> dict[str, str]:
    named = {"x-ms-" + name.replace("_", "-"): value for name, value in headers.items()}
    asked = {"x-ms-lease-action": action, **named}
    answer = files.put(f"/{share}?restype=share&comp=lease", asked)
    return {"status": str(answer.status), "code": answer.code or "", **dict(answer.headers)}


def test_the_life_of_a_share(files: Client, share: str) -> None:
    """F-SHR-01, F-SHR-04, F-SHR-09, F-ADR-03, F-ADR-04."""
    expect(files.put(f"/{share}?restype=share"), 409, "ShareAlreadyExists")
    for ask in (files.get, files.head):
        seen = expect(ask(f"/{share}?restype=share", {"If-Match": '"0x8D"'}), 200)
        assert seen["x-ms-share-quota"] == "5120"
        assert seen["x-ms-access-tier"] == "TransactionOptimized"
        assert seen["x-ms-enabled-protocols"] == "SMB"
        assert (seen["x-ms-lease-status"], seen["x-ms-lease-state"]) == ("unlocked", "available")
        assert seen.etag and seen["Last-Modified"] and seen["x-ms-access-tier-change-time"]
    expect_names(
        files.delete(f"/{share}?restype=share", {"x-ms-delete-snapshots": "all"}),
        400,
        "InvalidHeaderValue",
        "x-ms-delete-snapshots",
    )
    expect(files.delete(f"/{share}?restype=share", {"x-ms-delete-snapshots": "include"}), 202)
    expect(files.get(f"/{share}?restype=share"), 404, "ShareNotFound")
    for target in ("&comp=metadata", "&comp=acl"):
        expect(files.get(f"/{share}?restype=share{target}"), 404, "ShareNotFound")
    expect(files.put(f"/{share}?restype=share&comp=properties"), 404, "ShareNotFound")
    expect(files.put(f"/{share}?restype=share"), 201)


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("x-ms-share-quota", "1", 201),
        ("x-ms-share-quota", "102400", 201),
        ("x-ms-share-quota", "0", 400),
        ("x-ms-share-quota", "102401", 400),
        ("x-ms-share-quota", "ten", 400),
        ("x-ms-access-tier", "hot", 201),
        ("x-ms-access-tier", "Premium", 400),
        ("x-ms-enabled-protocols", "SMB", 201),
        ("x-ms-enabled-protocols", "NFS", 501),
        ("x-ms-enabled-protocols", "FTP", 400),
        ("x-ms-root-squash", "NoRootSquash", 501),
    ],
)
def test_what_a_share_may_be(files: Client, header: str, value: str, status: int) -> None:
    """F-SHR-02, F-SHR-03, F-ADR-06."""
    name = f"made-{header[5:].replace('-', '')}-{value.lower()}"
    code = {201: None, 400: "InvalidHeaderValue", 501: "NotImplemented"}[status]
    expect(files.put(f"/{name}?restype=share", {header: value}), status, code)
    if status == 201 and header != "x-ms-enabled-protocols":
        seen = files.get(f"/{name}?restype=share")[header]
        assert seen.lower() == value.lower()


@pytest.mark.parametrize(
    ("name", "code"),
    [("ab", "OutOfRangeInput"), ("UPPER", "InvalidResourceName"), ("a--b", "InvalidResourceName")],
)
def test_names_that_no_share_has(files: Client, name: str, code: str) -> None:
    """F-ADR-02."""
    expect(files.put(f"/{name}?restype=share"), 400, code)


def test_the_root_is_a_directory_on_any_host(files: Client, share: str) -> None:
    """F-ADR-01."""
    other = files.another("")
    host = {"Host": f"{files.account}.file.localhost:{files.port}"}
    expect(other.get(f"/{share}?restype=share", host), 200)
    other.close()


def test_properties_and_metadata_change_what_they_name(files: Client, share: str) -> None:
    """F-SHR-05, F-SHR-06, F-SHR-08."""
    target = f"/{share}?restype=share"
    before = files.get(target)
    etags = [before.etag]
    etags.append(
        expect(files.put(target + "&comp=properties", {"x-ms-share-quota": "7"}), 200).etag
    )
    seen = files.get(target)
    assert (seen["x-ms-share-quota"], seen["x-ms-access-tier"]) == ("7", "TransactionOptimized")
    assert seen["x-ms-access-tier-change-time"] == before["x-ms-access-tier-change-time"]
    etags.append(
        expect(files.put(target + "&comp=properties", {"x-ms-access-tier": "Cool"}), 200).etag
    )
    seen = files.get(target)
    assert (seen["x-ms-share-quota"], seen["x-ms-access-tier"]) == ("7", "Cool")
    etags.append(expect(files.put(target + "&comp=metadata", {"x-ms-meta-Owner": "ann"}), 200).etag)
    assert metadata(files.get(target + "&comp=metadata")) == {"Owner": "ann"}
    etags.append(expect(files.put(target + "&comp=metadata"), 200).etag)
    assert metadata(files.head(target)) == {}
    assert len(set(etags)) == len(etags)
    assert files.get(target).etag == etags[-1]


def test_stored_policies(files: Client, share: str) -> None:
    """F-SHR-07."""
    target = f"/{share}?restype=share&comp=acl"
    expect(files.put(target, {}, ACL), 200)
    seen = expect(files.get(target), 200)
    assert texts(seen.xml, "SignedIdentifier/Id") == ["readers"]
    many = b"".join(
        b"<SignedIdentifier><Id>%d</Id></SignedIdentifier>" % number for number in range(6)
    )
    body = b"<SignedIdentifiers>" + many + b"</SignedIdentifiers>"
    expect(files.put(target, {}, body), 400, "InvalidXmlDocument")
    expect(files.put(target), 200)
    assert texts(files.get(target).xml, "SignedIdentifier") == []


def test_lists_of_shares(file_account: Client) -> None:
    """F-LSH-01, F-LSH-02, F-LSH-03."""
    for name in ("alpha", "beta", "bravo"):
        expect(file_account.put(f"/{name}?restype=share", {"x-ms-meta-of": name}), 201)
    lease(file_account, "beta", "acquire", lease_duration="-1")
    root = expect(file_account.get("/?comp=list"), 200).xml
    assert root.get("ServiceEndpoint") == file_account.url + "/"
    assert [child.tag for child in root] == ["Shares", "NextMarker"]
    assert texts(root, "Shares/Share/Name") == ["alpha", "beta", "bravo"]
    assert texts(root, "Shares/Share/Properties/LeaseState") == ["available", "leased", "available"]
    assert texts(root, "Shares/Share/Properties/LeaseDuration") == ["infinite"]
    assert texts(root, "Shares/Share/Properties/Quota") == ["5120"] * 3
    assert all(one.startswith('"0x') for one in texts(root, "Shares/Share/Properties/Etag"))
    assert root.find("Shares/Share/Metadata") is None
    found, marker = list[str](), ""
    while True:
        page = file_account.get(
            f"/?comp=list&prefix=b&maxresults=1&include=metadata,snapshots,deleted&marker={marker}"
        ).xml
        found += texts(page, "Shares/Share/Metadata/of")
        marker = page.findtext("NextMarker") or ""
        if not marker:
            break
    assert found == ["beta", "bravo"]
    expect(file_account.get("/?comp=list&maxresults=0"), 400, "OutOfRangeQueryParameterValue")
    expect(file_account.get("/?comp=list&marker=x"), 400, "InvalidQueryParameterValue")
    expect(file_account.get("/?comp=list&include=blobs"), 400, "InvalidQueryParameterValue")


def test_a_lease_guards_the_share(server: Running, files: Client, share: str) -> None:
    """F-LSE-01, F-LSE-02, F-LSE-03, F-SHR-08."""
    target = f"/{share}?restype=share"
    before = files.get(target).etag
    expect_absent = "LeaseNotPresentWithShareOperation"
    expect(files.get(target, {"x-ms-lease-id": A}), 412, expect_absent)
    held = lease(files, share, "acquire", lease_duration="15", proposed_lease_id=A)
    assert (held["status"], held["x-ms-lease-id"], held["ETag"]) == ("201", A, before)
    assert lease(files, share, "acquire", lease_duration="15")["code"] == "LeaseAlreadyPresent"
    writes = ("&comp=metadata", "&comp=properties", "&comp=acl")
    for comp in writes:
        refused = expect(files.put(target + comp), 412, "LeaseIdMissing")
        assert "lease on the file share" in refused.error["Message"]
        mismatch = files.put(target + comp, {"x-ms-lease-id": B})
        expect(mismatch, 412, "LeaseIdMismatchWithShareOperation")
        expect(files.put(target + comp, {"x-ms-lease-id": A}), 200)
    expect(files.delete(target), 412, "LeaseIdMissing")
    expect(files.get(target), 200)
    expect(files.get(target, {"x-ms-lease-id": B}), 412, "LeaseIdMismatchWithShareOperation")
    assert lease(files, share, "renew", lease_id=A)["status"] == "200"
    changed = lease(files, share, "change", lease_id=A, proposed_lease_id=B)
    assert changed["x-ms-lease-id"] == B
    server.advance(16)
    assert files.get(target)["x-ms-lease-state"] == "expired"
    expect(files.put(target + "&comp=metadata", {"x-ms-lease-id": B}), 412, "LeaseLost")
    assert lease(files, share, "renew", lease_id=B)["status"] == "200"
    broken = lease(files, share, "break", lease_break_period="0")
    assert (broken["status"], broken["x-ms-lease-time"]) == ("202", "0")
    assert lease(files, share, "release", lease_id=B)["status"] == "200"
    expect(files.delete(target), 202)


def test_who_waits_for_a_lease_gets_it(files: Client, share: str) -> None:
    """F-LSE-04."""
    lease(files, share, "acquire", lease_duration="-1", proposed_lease_id=A)
    asked = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-strongroom-wait": "20"}
    waiting = files.start("PUT", f"/{share}?restype=share&comp=lease", asked)
    assert lease(files, share, "release", lease_id=A)["status"] == "200"
    expect(waiting.result(30), 201)


def test_what_is_not_served_says_so(files: Client, share: str) -> None:
    """F-ADR-06."""
    for headers in ({"x-ms-root-squash": "RootSquash"}, {"x-ms-share-provisioned-iops": "500"}):
        refused = expect(files.put(f"/{share}x?restype=share", headers), 501, "NotImplemented")
        assert next(iter(headers)) in refused.error["Message"]


def test_service_properties(file_account: Client) -> None:
    """F-SVC-01, F-SVC-02."""
    target = "/?restype=service&comp=properties"
    seen = expect(file_account.get(target), 200).xml
    sections = [child.tag for child in seen]
    assert sections == ["HourMetrics", "MinuteMetrics", "Cors", "ProtocolSettings"]
    assert seen.findtext("ProtocolSettings/SMB/Multichannel/Enabled") == "false"
    wrapped = "<StorageServiceProperties>{}</StorageServiceProperties>"
    switch = "<ProtocolSettings><SMB><Multichannel><Enabled>{}</Enabled></Multichannel></SMB>"
    smb = switch + "</ProtocolSettings>"
    for value, status, code in (("false", 202, None), ("true", 501, "NotImplemented")):
        body = wrapped.format(smb.format(value)).encode()
        expect(file_account.put(target, {}, body), status, code)
    logging = wrapped.format("<Logging><Version>1.0</Version></Logging>").encode()
    expect(file_account.put(target, {}, logging), 400, "UnsupportedXmlNode")
    rule = (
        "<Cors><CorsRule><AllowedOrigins>http://a.example</AllowedOrigins><AllowedMethods>GET"
        "</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>"
    )
    expect(file_account.put(target, {}, wrapped.format(rule).encode()), 202)
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    preflight = expect(file_account.anonymous.send("OPTIONS", "/share/f", asked), 200)
    assert preflight["Access-Control-Allow-Origin"] == "http://a.example"
    assert preflight["Server"].startswith("Windows-Azure-File/1.0")
