"""What a request needs before it can succeed: its place, the resource, headers and a body.

Lives here: the requests that prepare a path, and what a request gets if the caller names nothing.
Must not live here: sending (sending.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qs

from tests.conformance.client import PUT_BLOB
from tests.conformance.table_client import JSON_SENT

KIB: Final = b"x" * 1024
MESSAGE: Final = b"<QueueMessage><MessageText>traced</MessageText></QueueMessage>"
ENTITY: Final = b'{"PartitionKey": "p", "RowKey": "r", "Number": 1}'
FILE: Final = {"x-ms-type": "file", "x-ms-content-length": "1024"}
DIRECTORY: Final = {"x-ms-file-permission": "inherit", "x-ms-file-attributes": "None"}
NAME_CHARS_MIN: Final = 3
_SHORT_NAME: Final = re.compile(r"^/(\w{1,2})(?=[/?(]|$)")
_PAGE = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
_WRITTEN = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-1023"}
_APPEND = {"x-ms-blob-type": "AppendBlob"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to a service; `overwrites`: only sent if HEAD finds nothing there."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    overwrites: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A request, and those that prepare it; one of these may answer that there is the thing."""

    before: tuple[Sent, ...]
    request: Sent


def plan(service: str, request: Sent) -> Plan:
    """Complete a request. What the caller gave stays as it is, but for a name that is too short."""
    request = replace(request, target=lengthened(request.target))
    path, _, query = request.target.partition("?")
    names = [name for name in path.split("/") if name]
    asked = {name: values[-1] for name, values in parse_qs(query).items()}
    make = {"blob": _blob, "queue": _queue, "table": _table, "file": _file}[service]
    before, headers, body = make(request.method, names, asked)
    return Plan(
        tuple(before),
        Sent(request.method, request.target, {**headers, **request.headers}, request.body or body),
    )


def lengthened(target: str) -> str:
    """Return the target with a valid first name: Azure refuses `c`, so `/c/b` becomes `/ccc/b`."""
    return _SHORT_NAME.sub(
        lambda found: f"/{found[1] * NAME_CHARS_MIN}"[: NAME_CHARS_MIN + 1], target
    )


_Parts = tuple[list[Sent], dict[str, str], bytes]


def _makes(method: str, names: list[str], asked: dict[str, str]) -> bool:
    """Whether the request itself makes the resource of its path."""
    return method == "PUT" and "comp" not in asked


def _blob(method: str, names: list[str], asked: dict[str, str]) -> _Parts:
    if not names or (len(names) == 1 and _makes(method, names, asked)):
        return [], {}, b""
    before = [Sent("PUT", f"/{names[0]}?restype=container")]
    if len(names) == 1:
        return before, {}, b""
    if _makes(method, names, asked):
        return before, PUT_BLOB, KIB
    comp = asked.get("comp", "")
    before.append(_blob_before(f"/{'/'.join(names)}", comp))
    is_write = method == "PUT" and comp in ("page", "appendblock", "block")
    headers = _WRITTEN if is_write and comp == "page" else {}
    return before, headers, KIB if is_write else b""


def _blob_before(path: str, comp: str) -> Sent:
    if comp in ("page", "pagelist"):
        return Sent("PUT", path, _PAGE, overwrites=True)
    if comp in ("appendblock", "seal"):
        return Sent("PUT", path, _APPEND, overwrites=True)
    return Sent("PUT", path, PUT_BLOB, KIB, overwrites=True)


def _queue(method: str, names: list[str], asked: dict[str, str]) -> _Parts:
    if not names or (len(names) == 1 and _makes(method, names, asked)):
        return [], {}, b""
    before = [Sent("PUT", f"/{names[0]}")]
    if names[1:] == ["messages"] and method == "GET":
        before.append(Sent("POST", f"/{names[0]}/messages", {}, MESSAGE))
    return before, {}, MESSAGE if len(names) > 1 and method in ("POST", "PUT") else b""


def _table(method: str, names: list[str], asked: dict[str, str]) -> _Parts:
    table, _, key = names[0].partition("(") if names else ("", "", "")
    if table in ("", "Tables", "$batch"):
        is_new = table == "Tables" and method == "POST"
        return [], JSON_SENT if is_new else {}, b'{"TableName": "Traced"}' if is_new else b""
    before = [Sent("POST", "/Tables", JSON_SENT, b'{"TableName": "%s"}' % table.encode())]
    if method == "GET" or "'p'" in key:
        before.append(Sent("POST", f"/{table}", JSON_SENT, ENTITY))
    writes = method in ("POST", "PUT", "MERGE", "PATCH") and "comp" not in asked
    any_etag = {"If-Match": "*"} if key and method != "GET" else {}
    return before, {**JSON_SENT, **any_etag} if writes else any_etag, ENTITY if writes else b""


def _file(method: str, names: list[str], asked: dict[str, str]) -> _Parts:
    if not names or (len(names) == 1 and _makes(method, names, asked)):
        return [], {}, b""
    before = [Sent("PUT", f"/{names[0]}?restype=share")]
    paths = [f"/{'/'.join(names[: end + 1])}" for end in range(1, len(names))]
    is_directory = asked.get("restype") == "directory"
    before += [Sent("PUT", f"{path}?restype=directory", DIRECTORY) for path in paths[:-1]]
    if not paths:
        return before, {}, b""
    if _makes(method, names, asked):
        return before, DIRECTORY if is_directory else FILE, b""
    if is_directory:
        return [*before, Sent("PUT", f"{paths[-1]}?restype=directory", DIRECTORY)], {}, b""
    before.append(Sent("PUT", paths[-1], FILE, overwrites=True))
    is_write = method == "PUT" and asked.get("comp") == "range"
    written = {"x-ms-write": "update", "x-ms-range": "bytes=0-1023"}
    return before, written if is_write else {}, KIB if is_write else b""
