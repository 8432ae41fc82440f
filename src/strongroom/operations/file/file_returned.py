"""The answers of operations on directories and files: headers and documents.

Source: responses of "Operations on directories" and "Operations on files"; reference file.md 3 to
5.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.operations.core.answers import Headers, document, long_document
from strongroom.operations.core.copies import copy_headers
from strongroom.operations.core.leases import lease_headers
from strongroom.operations.core.spec import Content, Origin, Returned
from strongroom.operations.file.binary_permissions import binary_of, is_binary
from strongroom.semantics.core import listing
from strongroom.semantics.file import attributes
from strongroom.services.core.calls import Call
from strongroom.services.file.names.permissions import StoredPermission
from strongroom.services.file.rest import listing as lists
from strongroom.services.file.rest.listing import DirectoryPage, ListDirectory, NodeRow
from strongroom.services.file.rest.nodes import NodeView, NodeWritten
from strongroom.services.file.rest.ranges import RangeList
from strongroom.services.file.rest.reading import FileDownload
from strongroom.values import etag_text, iso7, md5_text, rfc1123
from strongroom.wire.file import list_directory as xml
from strongroom.wire.file.list_directory import ListedNode

ENCRYPTED: Final = Returned("x-ms-request-server-encrypted", lambda result: "true")
BODY_MD5: Final = Returned(
    "Content-MD5", lambda result: None if result.md5 is None else md5_text(result.md5)
)
LAST_WRITE: Final = Returned("x-ms-file-last-write-time", lambda result: iso7(result.record.write))
NODE_ETAG: Final = Returned("ETag", lambda result: etag_text(result.record.etag))
NODE_LAST_MODIFIED: Final = Returned(
    "Last-Modified", lambda result: rfc1123(result.record.modified)
)
LIST_ETAG: Final = Returned("ETag", lambda result: etag_text(result.view.record.etag))
LIST_LAST_MODIFIED: Final = Returned(
    "Last-Modified", lambda result: rfc1123(result.view.record.modified)
)
FILE_LENGTH: Final = Returned(
    "x-ms-content-length", lambda result: str(result.view.record.size_bytes)
)
PERMISSION_KEY: Final = Returned("x-ms-file-permission-key", lambda result: result.key)
JSON: Final = Returned("Content-Type", lambda result: "application/json")


def smb_headers(result: NodeView | NodeWritten) -> Headers:
    record, where = result.record, result.where
    return (
        ("x-ms-file-permission-key", record.permission),
        ("x-ms-file-attributes", attributes.text(record.attributes)),
        ("x-ms-file-creation-time", iso7(record.creation)),
        ("x-ms-file-last-write-time", iso7(record.write)),
        ("x-ms-file-change-time", iso7(record.change)),
        ("x-ms-file-id", str(where.id)),
        ("x-ms-file-parent-id", str(where.parent)),
    )


def metadata(view: NodeView) -> Headers:
    return tuple(("x-ms-meta-" + name, value) for name, value in view.record.metadata)


def directory_headers(view: NodeView) -> Headers:
    """The headers of Get Directory Properties, but for ETag and Last-Modified."""
    return (*metadata(view), ("x-ms-server-encrypted", "true"), *smb_headers(view))


def file_headers(result: NodeView | FileDownload) -> Headers:
    """The headers of Get File and Get File Properties."""
    view = result.view if isinstance(result, FileDownload) else result
    record = view.record
    headers = [
        ("ETag", etag_text(record.etag)),
        ("Last-Modified", rfc1123(record.modified)),
        ("x-ms-type", "File"),
        ("x-ms-server-encrypted", "true"),
        ("Accept-Ranges", "bytes"),
        *_properties(result, view),
        *lease_headers(record.lease, view.version),
        *(() if record.copy is None else copy_headers(record.copy)),
        *metadata(view),
        *smb_headers(view),
    ]
    if isinstance(result, FileDownload) and result.is_partial:
        last = result.offset + result.length - 1
        headers.append(("Content-Range", f"bytes {result.offset}-{last}/{record.size_bytes}"))
    return tuple(headers)


def _properties(result: NodeView | FileDownload, view: NodeView) -> list[tuple[str, str]]:
    """The HTTP properties; a token may override some. The MD5 of a range is not that of the
    file."""
    record, overrides = view.record.properties, None
    md5 = record.content_md5
    texts = {
        "Content-Type": record.content_type,
        "Content-Encoding": record.encoding,
        "Content-Language": record.language,
        "Cache-Control": record.cache_control,
        "Content-Disposition": record.disposition,
    }
    if isinstance(result, FileDownload):
        overrides = result.overrides
        texts["Content-Type"] = overrides.content_type or texts["Content-Type"]
        texts["Content-Encoding"] = overrides.content_encoding or texts["Content-Encoding"]
        texts["Content-Language"] = overrides.content_language or texts["Content-Language"]
        texts["Cache-Control"] = overrides.cache_control or texts["Cache-Control"]
        texts["Content-Disposition"] = overrides.content_disposition or texts["Content-Disposition"]
    pairs = [(name, value) for name, value in texts.items() if value is not None]
    if isinstance(result, FileDownload) and result.is_partial:
        if result.range_md5 is not None:
            pairs.append(("Content-MD5", md5_text(result.range_md5)))
        if md5 is not None:
            pairs.append(("x-ms-content-md5", md5))
    elif md5 is not None:
        pairs.append(("Content-MD5", md5))
    return pairs


def download_status(result: FileDownload) -> int:
    return 206 if result.is_partial else 200


def download(result: FileDownload, call: Call[Any], origin: Origin) -> Content:
    return Content(result.pieces, result.length, result.finished)


def head_only(view: NodeView, call: Call[Any], origin: Origin) -> Content:
    """No bytes for Get File Properties, but the length that Get File would announce."""
    return Content(b"", view.record.size_bytes)


def ranges(result: RangeList, call: Call[Any], origin: Origin) -> Content:
    return long_document(
        xml.write_ranges(
            ((one.start, one.end - 1, one.is_clear) for one in result.ranges), result.next_marker
        )
    )


def permission(result: StoredPermission, call: Call[Any], origin: Origin) -> Content:
    """The answer of Get Permission. It names the form if the request does. NotImplemented for text
    without a binary form."""
    form = call.input.form
    text = binary_of(result.text) if is_binary(form) else result.text
    body = {"permission": text} | ({"format": form} if form else {})
    return document(msgspec.json.encode(body))


def stats(total_bytes: int, call: Call[Any], origin: Origin) -> Content:
    return document(xml.write_stats(total_bytes))


def directory(page: DirectoryPage, call: Call[ListDirectory], origin: Origin) -> Content:
    query, given = origin.query, call.input
    body = xml.write_directory(
        xml.DirectoryList(
            origin.endpoint,
            call.target.container,
            call.target.blob,
            page.view.where.id if _with_ids(call) else None,
            query.get("marker"),
            query.get("prefix"),
            max_results=given.max_results if query.get("maxresults") else None,
            snapshot=call.target.snapshot,
        ),
        (_item(row, call) for row in page.rows),
        listing.encode_marker(page.marker),
    )
    return long_document(body)


# From this version on, every list has ids.
_IDS_SINCE: Final = "2020-10-02"


def _with_ids(call: Call[ListDirectory]) -> bool:
    return call.input.is_extended or call.caller.version >= _IDS_SINCE


def _item(row: NodeRow, call: Call[ListDirectory]) -> ListedNode:
    record, include = row.record, call.input.include
    times = (record.creation, record.access, record.write, record.change)
    return ListedNode(
        row.name.name,
        record.is_directory,
        row.name.id if _with_ids(call) else None,
        record.size_bytes,
        times=(*times, record.modified) if lists.TIMESTAMPS in include else None,
        etag=record.etag if lists.ETAG in include else None,
        attributes=attributes.text(record.attributes) if lists.ATTRIBUTES in include else None,
        permission_key=record.permission if lists.PERMISSION_KEY in include else None,
    )
