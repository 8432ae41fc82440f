"""Messages as XML: texts kept unchanged, refusals, and the written documents."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import limits
from strongroom.values import TICKS_PER_S
from strongroom.wire.core.xml import PageRequest, escape
from strongroom.wire.queue.list_queues import write_queues
from strongroom.wire.queue.queue_messages import (
    MessageItem,
    read_message,
    read_optional_message,
    write_messages,
)
from tests.refusals import refusal

NOW = 638_000_000_000_000_000


def body(text: str) -> bytes:
    return f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("", ""),
        ("  a\n\tb ", "  a\n\tb "),
        ("&lt;x y=&quot;1&quot;/&gt; &amp;amp;", '<x y="1"/> &amp;'),
        ("<![CDATA[<b>&amp;</b>]]>", "<b>&amp;</b>"),
        ("a\r\nb\rc&#13;d", "a\nb\nc\rd"),
        ("é 漢 😀 &#x1F600;", "é 漢 😀 😀"),
        ("one<!-- not this --> two", "one two"),
    ],
)
def test_the_text_is_what_xml_says(written: str, text: str) -> None:
    """Q-PUT-07."""
    assert read_message(body(written)) == text


def test_documents_may_be_declared_and_spaced() -> None:
    """Q-PUT-07."""
    document = (
        '<?xml version="1.0" encoding="utf-8"?>\n<QueueMessage>\n  <MessageText>x</MessageText>\n'
        "</QueueMessage>\n"
    )
    assert read_message(document.encode()) == "x"
    assert read_message(b"\xef\xbb\xbf" + document.encode()) == "x"
    assert read_message(b"<QueueMessage><MessageText/></QueueMessage>") == ""


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", "InvalidXmlDocument"),
        (b"text", "InvalidXmlDocument"),
        (b"<QueueMessage>", "InvalidXmlDocument"),
        (b"<Other><MessageText>x</MessageText></Other>", "InvalidXmlDocument"),
        (body("\x01"), "InvalidXmlDocument"),
        (body("&#1;"), "InvalidXmlDocument"),
        (body("&#xFFFF;"), "InvalidXmlDocument"),
        (body("\uffff"), "InvalidXmlDocument"),
        (b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>", "InvalidXmlDocument"),
        (b"<!DOCTYPE QueueMessage>" + body("x"), "InvalidXmlDocument"),
        (body("&unknown;"), "InvalidXmlDocument"),
        (
            b"<QueueMessage><MessageText>a</MessageText><MessageText/></QueueMessage>",
            "InvalidXmlDocument",
        ),
        (b"<QueueMessage></QueueMessage>", "MissingRequiredXmlNode"),
        (b"<QueueMessage>text</QueueMessage>", "MissingRequiredXmlNode"),
        (b"<QueueMessage><Text>x</Text></QueueMessage>", "UnsupportedXmlNode"),
        (body("a<b>c</b>"), "UnsupportedXmlNode"),
        (body("x" * 65537), "RequestBodyTooLarge"),
        (body("é" * 32769), "RequestBodyTooLarge"),
        (b" " * (limits.MESSAGE_BODY_BYTES_MAX + 1), "RequestBodyTooLarge"),
    ],
)
def test_anything_else_is_refused(sent: bytes, code: str) -> None:
    """Q-PUT-08, Q-PUT-09."""
    found = refusal(lambda: read_message(sent))
    assert found is not None and found.row.code == code


def test_the_longest_text_fits_however_it_is_escaped() -> None:
    """Q-PUT-08."""
    for written in ("x", "&amp;", "&quot;"):
        assert len(read_message(body(written * 65536))) == 65536


def test_without_a_body_an_update_has_no_text() -> None:
    """Q-UPD-02."""
    assert read_optional_message(b"") is None
    assert read_optional_message(body("")) == ""


@given(st.binary(max_size=300))
def test_no_body_does_worse_than_to_be_refused(data: bytes) -> None:
    """Q-PUT-09."""
    for sent in (data, body("")[:27] + data + b"</MessageText></QueueMessage>"):
        found = refusal(partial(read_message, sent))
        assert found is None or found.row.status == 400


@given(st.text(max_size=200))
def test_a_text_that_xml_can_hold_comes_back_as_it_was(text: str) -> None:
    """Q-PUT-07."""
    # escape() has replaced what XML cannot hold: nothing of that is left to be refused.
    found = read_message(body(escape(text)))
    assert found == "".join(char if escape(char) != "\ufffd" else "\ufffd" for char in text)
    item = MessageItem("id", NOW, NOW, text=found)
    answered = ET.fromstring(write_messages([item]))
    assert (answered.findtext("QueueMessage/MessageText") or "") == found


def test_elements_come_in_the_order_of_the_reference() -> None:
    """Q-PUT-01, Q-GET-01, Q-PEK-01."""
    full = MessageItem("id", NOW, 0, "receipt", NOW + TICKS_PER_S, 3, "text")
    (message,) = ET.fromstring(write_messages([full]))
    assert [child.tag for child in message] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"),
        *("DequeueCount", "MessageText"),
    ]
    assert message.findtext("ExpirationTime") == "Fri, 31 Dec 9999 23:59:59 GMT"
    put = MessageItem("id", NOW, NOW, "receipt", NOW)
    assert [child.tag for child in ET.fromstring(write_messages([put]))[0]] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"),
    ]
    peeked = MessageItem("id", NOW, NOW, dequeued=0, text="")
    assert [child.tag for child in ET.fromstring(write_messages([peeked]))[0]] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "DequeueCount", "MessageText"),
    ]
    assert write_messages([]).endswith(b"<QueueMessagesList />")


def test_a_list_of_queues() -> None:
    """Q-LST-01, Q-LST-02."""
    rows = [("a", None), ("b", (("k", "<v>"),))]
    root = ET.fromstring(
        b"".join(write_queues(PageRequest("http://h/a/", "", None, 2), rows, "next"))
    )
    assert root.get("ServiceEndpoint") == "http://h/a/"
    assert [child.tag for child in root] == ["Prefix", "MaxResults", "Queues", "NextMarker"]
    assert [queue.findtext("Name") for queue in root.iter("Queue")] == ["a", "b"]
    assert root.findtext("Queues/Queue/Metadata/k") == "<v>"
