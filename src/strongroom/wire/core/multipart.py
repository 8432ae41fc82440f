"""Batches: a multipart/mixed body of requests, and the body of their answers.

    of a table: batch = part | changeset
                changeset = a multipart/mixed part whose parts are the changes
    of blobs:   batch = parts
    part      = an application/http part: request line, header fields, empty line, body

Sources: RFC 2046 section 5.1; "Performing entity group transactions"; "Blob Batch"; OData 3.0,
batch processing. Lines end with CRLF or LF. Text before the first boundary and after the last is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.slices import Steps

Fields = tuple[tuple[str, str], ...]

_BOUNDARY_CHARS_MAX: Final = 70
_CONTENT_TYPE_CHARS_MAX: Final = 512
_FIELDS_MAX: Final = 64
_LINE_BYTES_MAX: Final = 32 * 1024
_BOUNDARY: Final = re.compile(
    r'(?:^|;)\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;",]+))\s*(?:;|$)', re.IGNORECASE
)
_BOUNDARY_TEXT: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]")
_BEHIND_MARK: Final = re.compile(rb"(--)?[ \t]*+(?=\r?\n|\Z)")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_REQUEST_LINE: Final = re.compile(r"([A-Z]+) +([^\x00-\x20\x7f]+)(?: +HTTP/1\.[01])?[ \t]*")
# Reading or writing this many takes some tenths of a millisecond.
_PARTS_AT_ONCE: Final = 16
_SINGLE_FIELDS: Final = frozenset(("content-type", "content-length", "content-id", "if-match"))


class PartRequest(msgspec.Struct, frozen=True):
    """One request of a batch, as it was sent: `url` absolute or relative, header values as latin-1.

    Its answer repeats `content_id`.
    """

    method: str
    url: str
    headers: Fields
    body: bytes = b""
    content_id: str | None = None


class Batch(msgspec.Struct, frozen=True):
    requests: tuple[PartRequest, ...]
    is_changeset: bool


class PartResponse(msgspec.Struct, frozen=True):
    """The answer to one request of a batch. `reason` None: the standard phrase of the status."""

    status: int
    headers: Fields = ()
    body: bytes = b""
    content_id: str | None = None
    reason: str | None = None


def parse(content_type: str, body: bytes, requests_max: int) -> Steps[Batch]:
    """Parse the requests of a table batch.

    Arguments:
        content_type: the request's, with its boundary.
        requests_max: parsing stops one request after this number, so one more may be returned.
    """
    parts = list(_limited(_parts(body, _boundary(content_type)), 2))
    if not parts:
        raise _invalid("The batch is empty.")
    if len(parts) > 1:
        raise _invalid("A batch holds one changeset, or one query and nothing else.")
    fields, content = _split_headers(parts[0])
    kind = _first(fields, "content-type") or ""
    if _is(kind, "multipart/mixed"):
        changes = _limited(_parts(content, _boundary(kind)), requests_max + 1)
        requests = yield from _requests(changes)
        if not requests:
            raise _invalid("The changeset is empty.")
        return Batch(requests, True)
    return Batch((_request(parts[0]),), False)


def parse_independent(
    content_type: str, body: bytes, requests_max: int
) -> Steps[tuple[PartRequest, ...]]:
    """Parse the requests of a blob batch, which are independent. Arguments as of `parse`."""
    parts = _limited(_parts(body, _boundary(content_type)), requests_max + 1)
    requests = yield from _requests(parts)
    if not requests:
        raise _invalid("The batch is empty.")
    return requests


def _requests(parts: Iterator[bytes]) -> Steps[tuple[PartRequest, ...]]:
    requests: list[PartRequest] = []
    for part in parts:
        requests.append(_request(part))
        if len(requests) % _PARTS_AT_ONCE == 0:
            yield
    return tuple(requests)


def _limited(parts: Iterator[bytes], most: int) -> Iterator[bytes]:
    for _, part in zip(range(most), parts, strict=False):
        yield part


def _boundary(content_type: str) -> str:
    if not _is(content_type, "multipart/mixed"):
        raise _invalid("The Content-Type of a batch must be multipart/mixed.")
    match = _BOUNDARY.search(content_type[:_CONTENT_TYPE_CHARS_MAX])
    text = (match[1] or match[2]) if match else ""
    if len(text) > _BOUNDARY_CHARS_MAX or _BOUNDARY_TEXT.fullmatch(text) is None:
        raise _invalid("The Content-Type multipart/mixed needs a boundary of 1 to 70 characters.")
    return text


def _is(content_type: str, kind: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == kind


def _parts(body: bytes, boundary: str) -> Iterator[bytes]:
    """The bytes between the boundary lines. A line end before a boundary belongs to the
    boundary."""
    mark = b"--" + boundary.encode("latin-1")
    begin = None
    for at in _lines_with(body, mark):
        behind = _BEHIND_MARK.match(body, at + len(mark))
        if behind is None:
            continue
        if begin is not None:
            yield body[begin : at - (2 if body[at - 2 : at] == b"\r\n" else 1)]
        begin = behind.end()
        if behind[1] is not None:
            return
    raise _invalid(f"The end of the parts, --{boundary}--, is missing.")


def _lines_with(body: bytes, mark: bytes) -> Iterator[int]:
    """The offsets of lines that begin with these bytes."""
    if body.startswith(mark):
        yield 0
    at = body.find(b"\n" + mark)
    while at >= 0:
        yield at + 1
        at = body.find(b"\n" + mark, at + 1)


def _split_headers(part: bytes) -> tuple[Fields, bytes]:
    """A part's own fields, and the content after their empty line."""
    begin = part.find(b"\n") + 1
    if part[:begin] not in (b"\n", b"\r\n"):
        raise _invalid("A part of the batch is empty.")
    return _read_fields(part, begin)


def _read_fields(text: bytes, at: int) -> tuple[Fields, bytes]:
    fields: list[tuple[str, str]] = []
    while at < len(text):
        line, at = _line(text, at)
        if not line:
            return tuple(fields), text[at:]
        name, colon, value = line.partition(":")
        if not colon or _NAME.fullmatch(name) is None or _CONTROL.search(value):
            raise _invalid(f"In a part of the batch: '{_excerpt(line)}' is no header field.")
        if len(fields) == _FIELDS_MAX:
            raise _invalid("In a part of the batch: too many fields.")
        if name.lower() in _SINGLE_FIELDS and _first(tuple(fields), name.lower()) is not None:
            raise _invalid(f"In a part of the batch: the field {name} is given twice.")
        fields.append((name, value.strip(" \t")))
    return tuple(fields), b""


def _line(text: bytes, at: int) -> tuple[str, int]:
    """The line at `at`, without its line end, and the offset of the next line."""
    end = text.find(b"\n", at)
    following = len(text) if end < 0 else end + 1
    if following - at > _LINE_BYTES_MAX:
        raise _invalid("A line in a part of the batch is too long.")
    line = text[at:following].decode("latin-1")
    return line.removesuffix("\n").removesuffix("\r"), following


def _request(part: bytes) -> PartRequest:
    """Parse the HTTP request inside an application/http part."""
    outer, content = _split_headers(part)
    if not _is(_first(outer, "content-type") or "", "application/http"):
        raise _invalid("A part of a batch must have Content-Type: application/http.")
    encoding = _first(outer, "content-transfer-encoding") or "binary"
    if encoding.lower() not in ("binary", "8bit", "7bit"):
        raise _invalid(f"The Content-Transfer-Encoding '{encoding[:64]}' is not supported.")
    line, at = _line(content, len(content) - len(content.lstrip(b"\r\n")))
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise _invalid(f"'{_excerpt(line)}' is no request line.")
    headers, body = _read_fields(content, at)
    content_id = _first(outer, "content-id") or _first(headers, "content-id")
    return PartRequest(match[1], match[2], headers, _sized(headers, body), content_id)


def _sized(headers: Fields, body: bytes) -> bytes:
    """As many bytes as Content-Length says; without it all, except trailing line ends."""
    text = _first(headers, "content-length")
    if text is None:
        return body.rstrip(b"\r\n")
    if not (text.isascii() and text.isdigit() and len(text) <= 9) or int(text) > len(body):
        raise _invalid(f"The Content-Length '{text[:32]}' of a part is not that of its body.")
    return body[: int(text)]


def _first(fields: Fields, name: str) -> str | None:
    return next((value for known, value in fields if known.lower() == name), None)


def _excerpt(text: str) -> str:
    return text[:64].encode("ascii", "backslashreplace").decode("ascii")


def _invalid(reason: str) -> StorageError:
    return StorageError(errors.INVALID_INPUT, f"{errors.INVALID_INPUT.message} {reason}")


def write(
    responses: Sequence[PartResponse], is_changeset: bool, batch_id: str, changeset_id: str
) -> Steps[tuple[str, bytes]]:
    """The (Content-Type, body) that answers a table batch.

    Arguments:
        is_changeset: whether the requests were in a changeset.
        batch_id, changeset_id: GUIDs for the two boundaries, which must not occur in the answers.
    """
    boundary, inner = f"batchresponse_{batch_id}", f"changesetresponse_{changeset_id}"
    written = yield from _all_written(_written, responses)
    parts = b"".join(written)
    if is_changeset:
        head = f"Content-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode()
        parts = head + _enclosed(written, inner)
    # Tables end the line of the last boundary, blobs do not: clients of blobs expect nothing there.
    return f"multipart/mixed; boundary={boundary}", _enclosed([parts], boundary) + b"\r\n"


def write_independent(responses: Iterable[PartResponse], batch_id: str) -> Steps[tuple[str, bytes]]:
    """The (Content-Type, body) that answers a blob batch.

    Arguments:
        batch_id: a GUID for the boundary, which must not occur in the answers.
    """
    boundary = f"batchresponse_{batch_id}"
    parts = yield from _all_written(_written_by_itself, responses)
    return f"multipart/mixed; boundary={boundary}", _enclosed(parts, boundary)


def _all_written(
    write: Callable[[PartResponse], bytes], responses: Iterable[PartResponse]
) -> Steps[list[bytes]]:
    written: list[bytes] = []
    for response in responses:
        written.append(write(response))
        if len(written) % _PARTS_AT_ONCE == 0:
            yield
    return written


def _enclosed(parts: Sequence[bytes], boundary: str) -> bytes:
    line = f"--{boundary}".encode()
    pieces = [line + b"\r\n" + part + b"\r\n" for part in parts]
    return b"".join(pieces) + line + b"--"


def _written(response: PartResponse) -> bytes:
    """The Content-ID of a part of a table batch is a header of the inner response."""
    part = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", ""]
    return _joined([*part, _status_line(response), *_content_id(response)], response)


def _written_by_itself(response: PartResponse) -> bytes:
    """The Content-ID of a part of a blob batch is a field of the part, where clients look for
    it."""
    part = ["Content-Type: application/http", *_content_id(response), ""]
    return _joined([*part, _status_line(response)], response)


def _status_line(response: PartResponse) -> str:
    phrase = response.reason or HTTPStatus(response.status).phrase
    return f"HTTP/1.1 {response.status} {phrase}"


def _content_id(response: PartResponse) -> tuple[str, ...]:
    return () if response.content_id is None else (f"Content-ID: {response.content_id}",)


def _joined(lines: list[str], response: PartResponse) -> bytes:
    lines += [f"{name}: {value}" for name, value in response.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + response.body
