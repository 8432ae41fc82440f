"""Hardened reading of XML, and the parts for writing it with templates.

A bounded reader without document types, entities or namespaces, and escaping; each document has a
module. Source: XML 1.0; errors InvalidXmlDocument and InvalidXmlNodeValue of "Common REST API error
codes".

The reader is Expat itself. A document type is refused when it begins, so that no entity, internal
or external, can ever be declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote
from xml.parsers import expat

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.slices import Steps, run_to_completion

DECLARATION: Final = '<?xml version="1.0" encoding="utf-8"?>'
_DEPTH_MAX: Final = 16
# Half a millisecond's work.
_FED_BYTES: Final = 8 * limits.KIB
_PIECE_BYTES_MAX: Final = 4096
_LONG_PIECE: Final = re.compile(b"<[^<]{%d}" % _PIECE_BYTES_MAX)
_ILLEGAL_CLASS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
_ILLEGAL: Final = re.compile(f"[{_ILLEGAL_CLASS}]")
_SPECIAL: Final = re.compile(f'[&<>"\r{_ILLEGAL_CLASS}]')
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}


class PageRequest(msgspec.Struct, frozen=True):
    """The parts of a request that a page of its list repeats; None = not given.

    Attributes:
        endpoint: the service's URL, with a slash at its end.
    """

    endpoint: str
    prefix: str | None = None
    marker: str | None = None
    max_results: int | None = None


@dataclass(slots=True)
class Element:
    """An element: its name, the text directly inside it, its children in order."""

    name: str
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def child(self, name: str) -> Element | None:
        return next((child for child in self.children if child.name == name), None)

    def require(self, name: str) -> Element:
        child = self.child(name)
        if child is None:
            raise missing_node(name)
        return child

    def only(self, *names: str) -> None:
        """Check that every child has one of these names, and none is repeated."""
        seen = set()
        for child in self.children:
            if child.name not in names:
                raise unsupported_node(child.name)
            if child.name in seen:
                raise invalid_document(f"The element {child.name} is present twice.")
            seen.add(child.name)


class UnexpectedXml(Exception):
    """Raised by a handler of `parse` for an unexpected element; `parse` adds the position."""


def invalid_document(reason: str, place: tuple[int, int] | None = None) -> StorageError:
    """`place` is the line and the position, where it is known."""
    where: errors.Extras = ()
    if place is not None:
        where = (("LineNumber", str(place[0])), ("LinePosition", str(place[1])))
    return StorageError(errors.INVALID_XML_DOCUMENT, None, (*where, ("Reason", reason)))


def invalid_node(name: str, value: str, reason: str = "") -> StorageError:
    extras: errors.Extras = (("XmlNodeName", name), ("XmlNodeValue", value[:1024]))
    return StorageError(
        errors.INVALID_XML_NODE_VALUE, None, (*extras, ("Reason", reason)) if reason else extras
    )


def unsupported_node(name: str) -> StorageError:
    return StorageError(errors.UNSUPPORTED_XML_NODE, None, (("XmlNodeName", name),))


def missing_node(name: str) -> StorageError:
    return StorageError(errors.MISSING_REQUIRED_XML_NODE, None, (("XmlNodeName", name),))


def read(body: bytes, root: str, max_bytes: int = limits.XML_BODY_BYTES_MAX) -> Element:
    """The tree of a small document whose outermost element is `root`."""
    top = Element("")
    open_elements = [top]

    def start(name: str, _attributes: dict[str, str]) -> None:
        if len(open_elements) == 1 and name != root:
            raise UnexpectedXml(f"The outermost element must be {root}.")
        if len(open_elements) > _DEPTH_MAX:
            raise UnexpectedXml("The elements are nested too deeply.")
        element = Element(name)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_name: str) -> None:
        open_elements.pop()

    def text(data: str) -> None:
        open_elements[-1].text += data

    parse(body, max_bytes, Handlers(start, end, text))
    return top.children[0]


class Handlers(NamedTuple):
    start: Callable[[str, dict[str, str]], None]
    end: Callable[[str], None]
    text: Callable[[str], None]


def parse(body: bytes, max_bytes: int, handlers: Handlers) -> None:
    """Drive the handlers over a document: UTF-8, or UTF-16 with a byte order mark.

    The encoding in the XML declaration is ignored.
    """
    run_to_completion(_parse_steps(body, max_bytes, handlers, len(body)))


def parse_long(body: bytes, max_bytes: int, handlers: Handlers) -> Steps[None]:
    """Do what `parse` does, in steps.

    In a document above XML_BODY_BYTES_MAX, a tag or a text above 4 KiB is refused. A million
    attributes would take a second, and so would a text in many pieces.
    """
    if len(body) <= limits.XML_BODY_BYTES_MAX:
        return _parse_steps(body, max_bytes, handlers, _FED_BYTES)
    return _parse_steps(body, max_bytes, handlers, _FED_BYTES, _refuse_long_piece)


def _parse_steps(
    body: bytes,
    max_bytes: int,
    handlers: Handlers,
    step_bytes: int,
    check: Callable[[bytes], None] = lambda part: None,
) -> Steps[None]:
    """Parse a document part by part.

    Arguments:
        check: checks each part together with the _PIECE_BYTES_MAX bytes before it.
    """
    if len(body) > max_bytes:
        raise errors.body_too_large(max_bytes)
    parser = expat.ParserCreate("UTF-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = handlers.start, handlers.end
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        for begin in range(0, len(body), step_bytes or 1):
            end = begin + step_bytes
            check(body[max(0, begin - _PIECE_BYTES_MAX) : end])
            parser.Parse(body[begin:end], False)
            yield
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise invalid_document(reason, (error.lineno, error.offset + 1)) from None
    except UnexpectedXml as error:
        place = (parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
        raise invalid_document(str(error), place) from None


def _refuse_long_piece(part: bytes) -> None:
    if _LONG_PIECE.search(part):
        raise invalid_document("A tag or a text is too long.")


def _refuse_doctype(*_declaration: object) -> None:
    raise UnexpectedXml("Document type declarations are not allowed.")


def escape(text: str) -> str:
    """Escape text or an attribute's value; characters that are illegal in XML become U+FFFD."""
    return text if _SPECIAL.search(text) is None else _SPECIAL.sub(_escaped, text)


def has_illegal(text: str) -> bool:
    """Whether a text has a character that XML does not permit."""
    return _ILLEGAL.search(text) is not None


def element(name: str, text: str | None) -> str:
    """`<name>text</name>`, or `<name />` without text."""
    return f"<{name}>{escape(text)}</{name}>" if text else f"<{name} />"


def optional_element(name: str, text: str | None) -> str:
    """Empty for None."""
    return "" if text is None else element(name, text)


def name_element(name: str, tag: str = "Name") -> str:
    """The element of a blob's name, percent-encoded and marked when XML cannot represent it."""
    if _SPECIAL.search(name) is None:
        return f"<{tag}>{name}</{tag}>"
    if _ILLEGAL.search(name) is None:
        return f"<{tag}>{_SPECIAL.sub(_escaped, name)}</{tag}>"
    encoded = quote(name.encode("utf-8", "replace"), safe="/~")
    return f'<{tag} Encoded="true">{encoded}</{tag}>'


def metadata_element(metadata: tuple[tuple[str, str], ...] | None) -> str:
    """`<Metadata>` with an element for each pair; "" for None."""
    if metadata is None:
        return ""
    if not metadata:
        return "<Metadata />"
    pairs = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in metadata)
    return f"<Metadata>{pairs}</Metadata>"


def pieces(head: str, rows: Iterable[str], tail: str, rows_at_once: int = 64) -> Iterator[bytes]:
    """A long document, piece by piece.

    Arguments:
        rows: consumed lazily, as the pieces are made.
        rows_at_once: rows in one piece; they should take some tenths of a millisecond.
    """
    yield head.encode("utf-8", "replace")
    remaining = iter(rows)
    while part := "".join(islice(remaining, rows_at_once)):
        yield part.encode("utf-8", "replace")
    yield tail.encode("utf-8", "replace")


def enumeration(
    request: PageRequest, tag: str, rows: Iterable[str], next_marker: str
) -> Iterator[bytes]:
    """A page of a list of the account, piece by piece.

    Arguments:
        rows: consumed lazily, as the pieces are made; they are written inside `<tag>`.
        next_marker: empty on the last page.
    """
    most = None if request.max_results is None else str(request.max_results)
    head = (
        f'{DECLARATION}<EnumerationResults ServiceEndpoint="{escape(request.endpoint)}">'
        f"{optional_element('Prefix', request.prefix)}{optional_element('Marker', request.marker)}"
        f"{optional_element('MaxResults', most)}<{tag}>"
    )
    tail = f"</{tag}>{element('NextMarker', next_marker)}</EnumerationResults>"
    return pieces(head, rows, tail)


def rows_in(tag: str, rows: Iterable[str]) -> Iterator[str]:
    """The rows inside `<tag>`, as rows; `<tag />` when there is none."""
    remaining = iter(rows)
    first = next(remaining, None)
    if first is None:
        yield f"<{tag} />"
        return
    yield f"<{tag}>"
    yield first
    yield from remaining
    yield f"</{tag}>"


def _escaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0], "\ufffd")
