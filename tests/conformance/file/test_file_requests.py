"""Requests on directories and files over HTTP: the refusals, and the form of answers."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.client import Client
from tests.conformance.running import Running

CREATE = {"x-ms-type": "file", "x-ms-content-length": "10"}
SMB = (
    *("x-ms-file-permission-key", "x-ms-file-attributes", "x-ms-file-creation-time"),
    *("x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id"),
)


def update(first: int, last: int, **more: str) -> dict[str, str]:
    return {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{last}", **more}


@pytest.fixture
def file(files: Client, share: str) -> str:
    """The target of a new file of ten bytes."""
    target = f"/{share}/f"
    expect(files.put(target, CREATE), 201)
    return target


@pytest.mark.parametrize(
    ("headers", "code", "name"),
    [
        ({"x-ms-content-length": None}, "MissingRequiredHeader", "x-ms-content-length"),
        ({"x-ms-content-length": "-1"}, "InvalidHeaderValue", "x-ms-content-length"),
        ({"x-ms-content-length": str(4 << 40 | 1)}, "InvalidHeaderValue", "x-ms-content-length"),
        ({"x-ms-file-permission": "D:"}, "FileInvalidPermission", ""),
        ({"x-ms-file-permission-key": "key"}, "FileInvalidPermissionKey", ""),
        (
            {"x-ms-file-permission": "inherit", "x-ms-file-permission-key": "1*2"},
            "InvalidHeaderValue",
            "x-ms-file-permission",
        ),
        ({"x-ms-file-attributes": "Directory"}, "InvalidHeaderValue", ""),
        ({"x-ms-file-creation-time": "yesterday"}, "InvalidHeaderValue", ""),
        ({"x-ms-content-md5": "x" * 4097}, "InvalidHeaderValue", "x-ms-content-md5"),
        ({"x-ms-allow-trailing-dot": "maybe"}, "InvalidHeaderValue", "x-ms-allow-trailing-dot"),
    ],
)
def test_what_create_file_refuses(
    files: Client, share: str, headers: dict[str, str | None], code: str, name: str
) -> None:
    """F-FIL-01, F-ATT-03, F-PRM-01."""
    fields = {key: value for key, value in {**CREATE, **headers}.items() if value is not None}
    refused = expect(files.put(f"/{share}/f", fields), 400, code)
    if name:
        expect_names(refused, 400, code, name)
    expect(files.head(f"/{share}/f"), 404, "ResourceNotFound")


def test_a_creation_has_no_body(files: Client, share: str) -> None:
    """F-FIL-01."""
    expect(files.put(f"/{share}/f", CREATE, b"text"), 400, "InvalidHeaderValue")


def test_the_headers_of_directories_and_files(files: Client, share: str, file: str) -> None:
    """F-ATT-01, F-DIR-01, F-DIR-02, F-PRP-01, F-FIL-01."""
    made = expect(files.put(f"/{share}/d?restype=directory"), 201)
    assert all(made[name] for name in SMB) and made.etag and made["Last-Modified"]
    seen = expect(files.get(f"/{share}/d/?restype=directory"), 200)
    assert seen["x-ms-file-attributes"] == "Directory" and seen.etag == made.etag
    root = expect(files.get(f"/{share}?restype=directory"), 200)
    assert (root["x-ms-file-parent-id"], root["x-ms-file-id"]) == ("0", made["x-ms-file-parent-id"])
    seen = expect(files.head(file), 200)
    assert all(seen[name] for name in SMB)
    assert (seen["Content-Length"], seen["x-ms-type"]) == ("10", "File")
    assert seen["Content-Type"] == "application/octet-stream"
    assert seen["x-ms-lease-state"] == "available"
    expect(files.get(f"{file}?restype=directory"), 404, "ResourceNotFound")


def test_properties_are_replaced_together(files: Client, file: str) -> None:
    """F-PRP-01, F-PRP-02."""
    given = {"x-ms-content-type": "text/plain", "x-ms-cache-control": "none"}
    expect(files.put(f"{file}?comp=properties", given), 200)
    expect(files.put(f"{file}?comp=properties", {"x-ms-content-length": "20"}), 200)
    seen = files.head(file)
    assert (seen["Content-Type"], seen["Cache-Control"]) == ("text/plain", "none")
    assert seen["Content-Length"] == "20"
    expect(files.put(f"{file}?comp=properties", {"x-ms-content-language": "de"}), 200)
    seen = files.head(file)
    assert (seen.get("Cache-Control"), seen["Content-Language"]) == (None, "de")


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        (update(0, 3), b"abc", 400, "InvalidHeaderValue"),
        (update(8, 10), b"abc", 416, "InvalidRange"),
        ({"x-ms-write": "update"}, b"abc", 400, "MissingRequiredHeader"),
        ({"x-ms-write": "update", "Range": "bytes=0-"}, b"abc", 400, "InvalidHeaderValue"),
        ({"x-ms-write": "update", "Range": "0-2"}, b"abc", 400, "InvalidHeaderValue"),
        (update(0, 4 << 20), b"x" * ((4 << 20) + 1), 413, "RequestBodyTooLarge"),
        (update(0, 1 << 50), b"abc", 413, "RequestBodyTooLarge"),
        ({**update(0, 2), "Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, b"abc", 400, "Md5Mismatch"),
        ({**update(0, 2), "Content-MD5": "x"}, b"abc", 400, "InvalidMd5"),
        ({"x-ms-write": "clear", "Range": "bytes=0-2"}, b"abc", 400, "InvalidHeaderValue"),
        ({"x-ms-write": "erase", "Range": "bytes=0-2"}, b"", 400, "InvalidHeaderValue"),
        ({"x-ms-write": "clear", "Range": f"bytes=0-{10**18 - 1}"}, b"", 416, "InvalidRange"),
        ({"x-ms-write": "clear", "Range": f"bytes={10**17}-{10**17}"}, b"", 416, "InvalidRange"),
        (update(10**17, 10**17 + 2), b"abc", 416, "InvalidRange"),
        (
            {**update(0, 2), "x-ms-file-last-write-time": "soon"},
            b"abc",
            400,
            "InvalidHeaderValue",
        ),
    ],
)
def test_what_put_range_refuses(
    files: Client, file: str, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    """F-RNG-01, F-RNG-02."""
    expect(files.put(f"{file}?comp=range", headers, body), status, code)
    assert expect(files.get(file), 200).body == bytes(10)


@pytest.mark.parametrize("md5", ["x", "AAECAw==", "AAECAwQFBgcICQoLDA0ODw=="])
def test_the_md5_of_a_file_is_kept_as_it_was_sent(files: Client, share: str, md5: str) -> None:
    """F-PRP-01."""
    target, given = f"/{share}/m", {"x-ms-content-md5": md5}
    size = {"x-ms-type": "file", "x-ms-content-length": "1"}
    expect(files.put(target, {**size, **given}), 201)
    assert expect(files.head(target), 200)["Content-MD5"] == md5
    expect(files.put(f"{target}?comp=properties", {"x-ms-content-type": "a/b"}), 200)
    assert expect(files.head(target), 200).get("Content-MD5") is None
    expect(files.put(f"{target}?comp=properties", given), 200)
    assert expect(files.get(target), 200)["Content-MD5"] == md5


def test_ranges_come_in_pages(files: Client, share: str) -> None:
    """F-RNG-03."""
    target, where = f"/{share}/p", f"/{share}/p?comp=rangelist"
    expect(files.put(target, {"x-ms-type": "file", "x-ms-content-length": "9000"}), 201)
    for offset in range(100, 9000, 2048):
        expect(files.put(f"{target}?comp=range", update(offset, offset), b"x"), 201)
    whole = expect(files.get(where), 200)
    starts = texts(whole.xml, "Range/Start")
    assert len(starts) == 5 and whole.xml.find("NextMarker") is None
    found, marker, count = list[str | None](), "", 0
    while marker or not count:
        page = expect(files.get(f"{where}&maxresults=2&marker={marker}"), 200)
        found += texts(page.xml, "Range/Start")
        marker, count = page.xml.findtext("NextMarker") or "", count + 1
    assert (found, count) == (starts, 3)
    part = files.get(f"{where}&maxresults=1", {"Range": "bytes=2050-5000"})
    assert (texts(part.xml, "Range/Start"), part.xml.findtext("NextMarker")) == (["2050"], "4096")
    rest = files.get(f"{where}&marker=4096")
    assert (texts(rest.xml, "Range/Start"), rest.xml.findtext("NextMarker")) == (starts[2:], "")
    wrong = files.get(f"{where}&maxresults=0")
    expect_names(wrong, 400, "OutOfRangeQueryParameterValue", "maxresults")
    expect_names(files.get(f"{where}&marker=x"), 400, "InvalidQueryParameterValue", "marker")


def test_what_put_range_answers(files: Client, file: str) -> None:
    """F-RNG-01, F-RNG-03, F-GET-01, F-ATT-03."""
    before = files.head(file)
    kept = update(0, 2, **{"x-ms-file-last-write-time": "preserve"})
    put = expect(files.put(f"{file}?comp=range", kept, b"abc"), 201)
    digest = base64.b64encode(hashlib.md5(b"abc", usedforsecurity=False).digest()).decode()
    assert put["Content-MD5"] == digest
    assert put["x-ms-file-last-write-time"] == before["x-ms-file-last-write-time"]
    part = files.get(file, {"x-ms-range": "bytes=0-2", "x-ms-range-get-content-md5": "true"})
    expect(part, 206)
    assert (part.body, part["Content-MD5"]) == (b"abc", digest)
    assert part["Content-Range"] == "bytes 0-2/10"
    expect(files.get(file, {"x-ms-range-get-content-md5": "true"}), 400, "InvalidHeaderValue")
    past = expect(files.get(file, {"Range": "bytes=10-"}), 416, "InvalidRange")
    assert past["Content-Range"] == "bytes */10"
    listed = expect(files.get(f"{file}?comp=rangelist"), 200)
    assert listed["x-ms-content-length"] == "10"
    assert (texts(listed.xml, "Range/Start"), texts(listed.xml, "Range/End")) == (["0"], ["9"])
    expect(files.get(f"{file}?comp=rangelist", {"Range": "bytes=10-20"}), 416, "InvalidRange")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60"}, 400, "InvalidHeaderValue"),
        ({"x-ms-lease-action": "acquire"}, 400, "MissingRequiredHeader"),
        ({"x-ms-lease-action": "break"}, 409, "LeaseNotPresentWithLeaseOperation"),
        (
            {
                "x-ms-lease-action": "acquire",
                "x-ms-lease-duration": "-1",
                "x-ms-allow-trailing-dot": "true",
            },
            501,
            "NotImplemented",
        ),
    ],
)
def test_what_a_lease_on_a_file_refuses(
    files: Client, file: str, headers: dict[str, str], status: int, code: str
) -> None:
    """F-LSF-01, F-NAM-02."""
    expect(files.put(f"{file}?comp=lease", headers), status, code)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (None, "MissingRequiredHeader"),
        ("http://other.test/devstoreaccount1/s/f", "InvalidHeaderValue"),
        ("f", "InvalidHeaderValue"),
        ("http://[", "InvalidHeaderValue"),
    ],
)
def test_sources_that_no_rename_takes(
    files: Client, file: str, source: str | None, code: str
) -> None:
    """F-REN-06."""
    headers = {} if source is None else {"x-ms-file-rename-source": source}
    expect(files.put(f"{file}2?comp=rename", headers), 400, code)


def test_the_document_of_a_list(files: Client, share: str, file: str) -> None:
    """F-LST-01, F-LST-03."""
    target = f"/{share}?restype=directory&comp=list"
    root = expect(files.get(target), 200).xml
    assert (root.get("ShareName"), root.get("DirectoryPath")) == (share, "")
    assert root.findtext("DirectoryId") and root.findtext("Entries/File/FileId")
    assert root.findtext("Entries/File/Properties/Content-Length") == "10"
    assert root.find("Entries/File/Attributes") is None
    old = files.get(target, {"x-ms-version": "2019-12-12"}).xml
    assert old.find("DirectoryId") is None
    asked = {"x-ms-version": "2019-12-12", "x-ms-file-extended-info": "true"}
    assert files.get(target, asked).xml.findtext("DirectoryId")
    full = files.get(f"{target}&include=Timestamps,Etag,Attributes,PermissionKey").xml
    entry = full.find("Entries/File")
    assert entry is not None
    assert [child.tag for child in entry] == [
        *("Name", "FileId", "Properties", "Attributes", "PermissionKey")
    ]
    assert texts(entry, "Properties/Etag")[0] == files.head(file).etag
    expect(files.get(f"{target}&include=Owner"), 400, "InvalidQueryParameterValue")
    expect(files.get(f"{target}&marker=x"), 400, "InvalidQueryParameterValue")
    long = expect(files.get(f"{target}&prefix={'x' * 5000}"), 200).xml
    assert texts(long, "Entries/*") == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "InvalidInput"),
        (b"[]", 400, "InvalidInput"),
        (b'{"permission": 5}', 400, "InvalidInput"),
        (b'{"permission": "\xff"}', 400, "InvalidInput"),
        (b'{"permission": "O:SY"}', 400, "FileInvalidPermission"),
        (b'{"permission": "AQAEhA==", "format": "Binary"}', 400, "FileInvalidPermission"),
        (b'{"permission": "O:SYG:SYD:", "format": "Binary"}', 400, "FileInvalidPermission"),
        (b'{"permission": "O:SYG:SYD:", "format": "xml"}', 400, "InvalidInput"),
    ],
)
def test_what_create_permission_refuses(
    files: Client, share: str, body: bytes, status: int, code: str
) -> None:
    """F-PRM-02."""
    target = f"/{share}?restype=share&comp=filepermission"
    expect(files.put(target, {}, body), status, code)
    unknown = files.get(target, {"x-ms-file-permission-key": "1*2"})
    expect(unknown, 400, "FileInvalidPermissionKey")


def test_files_on_each_engine(each_engine: Running) -> None:
    """F-RNG-01, F-RNG-02, F-REN-01, F-DEL-01, F-GET-01."""
    files = each_engine.files()
    share = f"engines-{each_engine.port}"
    expect(files.put(f"/{share}?restype=share"), 201)
    expect(files.put(f"/{share}/d?restype=directory"), 201)
    size = 200_000
    create = {"x-ms-type": "file", "x-ms-content-length": str(size)}
    expect(files.put(f"/{share}/d/f", create), 201)
    data = bytes(range(250)) * 400
    expect(files.put(f"/{share}/d/f?comp=range", update(7, 100_006), data), 201)
    clear = {"x-ms-write": "clear", "x-ms-range": "bytes=65536-70000"}
    expect(files.put(f"/{share}/d/f?comp=range", clear), 201)
    wanted = bytes(7) + data[:65_529] + bytes(4465) + data[69_994:] + bytes(size - 100_007)
    renamed = {"x-ms-file-rename-source": f"{files.url}/{share}/d/f"}
    expect(files.put(f"/{share}/g?comp=rename", renamed), 200)
    assert expect(files.get(f"/{share}/g"), 200).body == wanted
    listed = expect(files.get(f"/{share}?restype=directory&comp=list"), 200).xml
    assert texts(listed, "Entries/*/Name") == ["d", "g"]
    expect(files.delete(f"/{share}/g"), 202)
    expect(files.delete(f"/{share}/d?restype=directory"), 202)
    expect(files.delete(f"/{share}?restype=share"), 202)
    files.close()


# Both forms of one descriptor, as the tests of the official SDKs send them.
BINARY = (
    "AQAUhGwAAACIAAAAAAAAABQAAAACAFgAAwAAAAAAFAD/AR8AAQEAAAAAAAUSAAAAAAAYAP8BHwABAgAAAAAABSAAAAAg"
    "AgAAAAAkAKkAEgABBQAAAAAABRUAAABZUbgXZnJdJWRjOwuMmS4AAQUAAAAAAAUVAAAAoGXPfnhLm1/nfIdwr/1IAQEF"
    "AAAAAAAFFQAAAKBlz354S5tf53yHcAECAAA="
)
TEXT = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751"
    "G:S-1-5-21-2127521184-1604012920-1887927527-513"
    "D:AI(A;;FA;;;SY)(A;;FA;;;BA)"
    "(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)S:NO_ACCESS_CONTROL"
)
FORMAT, PERMISSION = "x-ms-file-permission-format", "x-ms-file-permission"
KEY, NEW = "x-ms-file-permission-key", {"x-ms-version": "2024-11-04"}


def test_a_permission_in_binary_form(files: Client, share: str, file: str) -> None:
    """F-PRM-03."""
    target = f"/{share}?restype=share&comp=filepermission"
    body = json.dumps({"permission": BINARY, "format": "Binary"}).encode()
    key = expect(files.put(target, NEW, body), 201)[KEY]

    def shown(form: str, version: str = "2024-11-04") -> object:
        headers = {KEY: key, FORMAT: form, "x-ms-version": version}
        return json.loads(expect(files.get(target, headers), 200).body)

    assert shown("sddl") == {"permission": TEXT, "format": "sddl"}
    assert shown("Binary") == {"permission": BINARY, "format": "Binary"}
    assert shown("Binary", "2024-08-04") == {"permission": TEXT}
    wrong = files.get(target, {KEY: key, FORMAT: "xml", **NEW})
    expect_names(wrong, 400, "InvalidHeaderValue", FORMAT)
    given = {PERMISSION: BINARY, FORMAT: "binary", **NEW}
    new_file = {"x-ms-type": "file", "x-ms-content-length": "0", **given}
    source = {"x-ms-file-rename-source": f"{files.url}/{share}/new", **given}
    for path, headers in (
        (f"/{share}/new", new_file),
        (f"/{share}/d?restype=directory", given),
        (f"{file}?comp=properties", given),
        (f"/{share}/other?comp=rename", source),
    ):
        assert files.put(path, headers)[KEY] == key
    for path in (file, f"/{share}/other", f"/{share}/d?restype=directory"):
        assert expect(files.head(path), 200)[KEY] == key
    old = {**given, "x-ms-version": "2024-08-04"}
    expect(files.put(f"{file}?comp=properties", old), 400, "FileInvalidPermission")
    kept = {**given, PERMISSION: "preserve"}
    assert expect(files.put(f"{file}?comp=properties", kept), 200)[KEY] == key
    for wrong_value in ("x", BINARY[:40], "AAAA" * 2100):
        refused = files.put(f"{file}?comp=properties", {**given, PERMISSION: wrong_value})
        expect(refused, 400, "FileInvalidPermission")


def test_a_permission_with_a_condition_has_no_binary_form(files: Client, share: str) -> None:
    """F-PRM-03."""
    target = f"/{share}?restype=share&comp=filepermission"
    text = 'O:SYG:SYD:(XA;;FA;;;SY;(@User.Title=="PM"))'
    key = expect(files.put(target, NEW, json.dumps({"permission": text}).encode()), 201)[KEY]
    asked = files.get(target, {KEY: key, FORMAT: "binary", **NEW})
    expect(asked, 501, "NotImplemented")


def test_the_longest_permission(files: Client, share: str) -> None:
    """F-PRM-02."""
    target = f"/{share}?restype=share&comp=filepermission"
    head, entry = "O:SYG:SYD:", "(A;;FA;;;SY)"
    for count, status in ((5450, 201), (5461, 400)):
        text = head + entry * count
        body = json.dumps({"permission": text}).encode()
        made = files.put(target, {}, body)
        expect(made, status, None if status == 201 else "FileInvalidPermission")
        if status == 201:
            asked = {"x-ms-file-permission-key": made["x-ms-file-permission-key"]}
            assert json.loads(expect(files.get(target, asked), 200).body) == {"permission": text}


def test_no_handle_is_open(files: Client, share: str, file: str) -> None:
    """F-HDL-01."""
    expect(files.put(f"/{share}/d?restype=directory"), 201)
    for target in (file, f"/{share}/d", f"/{share}"):
        found = expect(files.get(f"{target}?comp=listhandles&maxresults=5"), 200).xml
        assert [child.tag for child in found] == ["Entries", "NextMarker"]
        assert len(found[0]) == 0
        for handle in ("*", "12"):
            close = files.put(f"{target}?comp=forceclosehandles", {"x-ms-handle-id": handle})
            assert expect(close, 200)["x-ms-number-of-handles-closed"] == "0"
            assert close["x-ms-number-of-handles-failed"] == "0"
    expect(files.get(f"/{share}/d?comp=listhandles", {"x-ms-recursive": "true"}), 200)
    for headers in ({"x-ms-recursive": "true"}, {"x-ms-recursive": "maybe"}):
        expect(files.get(f"{file}?comp=listhandles", headers), 400, "InvalidHeaderValue")
    wrong = files.put(f"{file}?comp=forceclosehandles", {"x-ms-handle-id": "x"})
    expect(wrong, 400, "InvalidHeaderValue")
    missing = files.put(f"{file}?comp=forceclosehandles")
    expect(missing, 400, "MissingRequiredHeader")
    expect(files.get(f"/{share}/none?comp=listhandles"), 404, "ResourceNotFound")
