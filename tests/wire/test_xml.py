"""The XML reader: its refusals, and escaping."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.slices import run_to_completion
from strongroom.wire.blob import block_list
from strongroom.wire.core import service_properties_xml, signed_identifiers, xml
from tests.refusals import outcome

DOCUMENT = "400 InvalidXmlDocument"
LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE R [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><R>&b;</R>"""

BAD = [
    *(b"", b"x", b"<R>", b"<R></S>", b"<R/><R/>", b"<S/>", b"<R>&undefined;</R>", b"<R>\xff</R>"),
    *(b"<R>\x00</R>", b"<R a=1/>", b"<R a='1' a='2'/>", b"<R><![CDATA[</R>", LAUGHS),
    b"<!DOCTYPE R SYSTEM 'file:///etc/passwd'><R/>",
    b"<!DOCTYPE R SYSTEM 'http://127.0.0.1:1/x.dtd'><R/>",
    b"<R>" * 20 + b"</R>" * 20,
]


@pytest.mark.parametrize("body", BAD)
def test_what_is_no_document(body: bytes) -> None:
    assert outcome(lambda: xml.read(body, "R")) == DOCUMENT


def test_a_refusal_tells_the_place() -> None:
    with pytest.raises(StorageError) as caught:
        xml.read(b"<R>\n  <a>\n</R>", "R")
    extras = dict(caught.value.extras)
    assert extras["LineNumber"] == "3"
    assert int(extras["LinePosition"]) > 0
    assert extras["Reason"] == "mismatched tag"


def test_a_refusal_of_what_is_well_formed_tells_the_place_too() -> None:
    with pytest.raises(StorageError) as caught:
        run_to_completion(block_list.read_block_list(b"<BlockList>\n <Newest/></BlockList>"))
    extras = dict(caught.value.extras)
    assert extras["LineNumber"] == "2"
    assert "Newest" in extras["Reason"]


def test_a_declared_encoding_is_not_looked_up() -> None:
    for encoding in ("no-such", "rot13", "utf-8", "latin-1"):
        body = f"<?xml version='1.0' encoding='{encoding}'?><R>\u00e9</R>".encode()
        assert xml.read(body, "R").text == "\u00e9"
    assert xml.read("<R>\u00e9</R>".encode("utf-16"), "R").text == "\u00e9"


def test_the_size_is_bounded() -> None:
    body = b"<R>" + b" " * 70_000 + b"</R>"
    assert outcome(lambda: xml.read(body, "R")) == "413 RequestBodyTooLarge"
    assert outcome(lambda: xml.read(body, "R", 100_000)) == "ok"


def test_a_tree() -> None:
    body = (
        "\ufeff<?xml version='1.0' encoding='utf-8'?><R>a<b>x &amp; \u00e9<!-- no --></b>c<b/></R>"
    )
    root = xml.read(body.encode(), "R")
    assert (root.name, root.text) == ("R", "ac")
    assert [child.text for child in root.children] == ["x & \u00e9", ""]
    assert root.child("b") is root.children[0]
    assert root.child("c") is None
    assert outcome(lambda: root.require("c")) == "400 MissingRequiredXmlNode"
    assert outcome(lambda: root.only("b")) == DOCUMENT
    assert outcome(lambda: root.only("c")) == "400 UnsupportedXmlNode"


PLAIN = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"))


@given(PLAIN)
def test_escaped_text_comes_back(text: str) -> None:
    assert (ElementTree.fromstring(xml.element("a", text)).text or "") == text
    attribute = ElementTree.fromstring(f'<a b="{xml.escape(text)}" />')
    assert attribute.get("b") == text


@given(st.text(st.characters(), min_size=1))
def test_any_text_can_be_written(text: str) -> None:
    assert ElementTree.fromstring(xml.element("a", text)).tag == "a"
    assert ElementTree.fromstring(xml.name_element(text)).tag == "Name"


@pytest.mark.parametrize("name", ["a\ufffe%2F", "\uffff", "a\x01b"])
def test_names_that_xml_cannot_hold_are_encoded(name: str) -> None:
    from urllib.parse import unquote

    found = ElementTree.fromstring(xml.name_element(name))
    assert found.get("Encoded") == "true"
    assert unquote(found.text or "") == name


def test_metadata() -> None:
    assert xml.metadata_element(None) == ""
    assert xml.metadata_element(()) == "<Metadata />"
    assert xml.metadata_element((("a", "<"),)) == "<Metadata><a>&lt;</a></Metadata>"


TAGS = [
    "BlockList",
    "Latest",
    "SignedIdentifiers",
    "SignedIdentifier",
    "Id",
    "AccessPolicy",
    "Cors",
]
TAGS += ["StorageServiceProperties", "CorsRule", "Logging", "Days", "Enabled", "RetentionPolicy"]
MARKUP = st.lists(
    st.sampled_from(
        [f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + ["x", "1", "&", "<"]
    )
).map(lambda parts: "".join(parts).encode())


@given(st.sampled_from(TAGS), MARKUP | st.binary())
def test_any_body_is_read_or_refused(root: str, inner: bytes) -> None:
    for body in (inner, f"<{root}>".encode() + inner + f"</{root}>".encode()):
        for read in (
            lambda body: run_to_completion(block_list.read_block_list(body)),
            signed_identifiers.read_signed_identifiers,
            service_properties_xml.read_service_properties,
        ):
            # Binds the loop's value.
            seen = outcome(lambda read=read, body=body: read(body))  # type: ignore[misc]
            assert seen.partition(" ")[0] in ("ok", "400")
