"""An answer as the client receives it, and its check.

`expect(answer, status, code)` also checks the rules for every answer, so that no test has to.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ETAG = re.compile(r'"0x[0-9A-F]{15,16}"')
RFC1123 = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer: `headers` in the order and case they were sent."""

    method: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def get(self, name: str) -> str | None:
        """Return the first header called `name`, in any case; None if there is none."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        assert value is not None, f"no header {name} in {self}"
        return value

    def names(self) -> set[str]:
        """The names of all headers, lower-cased."""
        return {name.lower() for name, _ in self.headers}

    @property
    def code(self) -> str | None:
        """The header x-ms-error-code."""
        return self.get("x-ms-error-code")

    @property
    def etag(self) -> str:
        """The header ETag, checked for its shape."""
        value = self["ETag"]
        assert ETAG.fullmatch(value), value
        return value

    @property
    def xml(self) -> ET.Element:
        """The body's root element."""
        return ET.fromstring(self.body.decode("utf-8-sig"))

    @property
    def error(self) -> dict[str, str]:
        """The elements of an error body."""
        root = self.xml
        assert root.tag == "Error", root.tag
        return {child.tag: child.text or "" for child in root}


def expect(answer: Answer, status: int, code: str | None = None) -> Answer:
    """Check status and error code (header, and body if there is one), and return the answer.

    Without `code` the answer must have no error code.
    """
    seen = f"{answer.status} {answer.code} {answer.reason!r} {answer.body[:600]!r}"
    assert (answer.status, answer.code) == (status, code), seen
    assert GUID.fullmatch(answer["x-ms-request-id"])
    assert RFC1123.fullmatch(answer["Date"])
    if code is not None and answer.body:
        assert answer.error["Code"] == code, seen
    return answer


def expect_names(answer: Answer, status: int, code: str, name: str) -> Answer:
    """Like `expect`, and the body's HeaderName or QueryParameterName is `name` (in any case)."""
    expect(answer, status, code)
    named = answer.error.get("HeaderName", answer.error.get("QueryParameterName"))
    assert named is not None and named.lower() == name.lower(), answer.error
    return answer


def texts(root: ET.Element, path: str) -> list[str]:
    """The texts of all elements at `path`."""
    return [element.text or "" for element in root.findall(path)]


def metadata(answer: Answer) -> dict[str, str]:
    """Return the pairs in x-ms-meta-*, with the names in the case of the answer."""
    found: Iterable[tuple[str, str]] = answer.headers
    prefix = "x-ms-meta-"
    return {n[len(prefix) :]: v for n, v in found if n.lower().startswith(prefix)}
