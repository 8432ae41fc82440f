"""Queues at their limits: numbers, texts, documents, receipts, and the edges of time."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client
from tests.conformance.messages import (
    Message,
    count,
    delete,
    document,
    get,
    messages,
    one,
    peek,
    put,
    target,
    update,
)
from tests.conformance.running import Running

WEEK_S = 604_800
OUT = "OutOfRangeQueryParameterValue"
INVALID = "InvalidQueryParameterValue"


def post(queues: Client, body: bytes, **parameters: object) -> Answer:
    return queues.send("POST", target("edge", **parameters), (), body)


HIDDEN: list[tuple[object, str | None]] = [
    (-1, OUT), (0, None), (WEEK_S - 1, None), (WEEK_S, INVALID), (WEEK_S + 1, OUT), ("x", INVALID),
    ("1e1", INVALID), ("%D9%A5", INVALID), ("%205", INVALID), ("", None), ("9" * 30, INVALID),
]  # fmt: skip
LIVES: list[tuple[object, str | None]] = [
    (-2, OUT), (-1, None), (0, OUT), (1, None), (WEEK_S, None), (WEEK_S + 1, None),
    (2**31 - 1, None), (2**31, None), ("9" * 18, None), ("1.5", INVALID), ("9" * 30, INVALID),
]  # fmt: skip
PUTS: list[tuple[dict[str, object], str | None]] = [
    # parameters, code
    *(({"visibilitytimeout": value}, code) for value, code in HIDDEN),
    *(({"messagettl": value}, code) for value, code in LIVES),
    ({"visibilitytimeout": 5, "messagettl": 5}, INVALID),
    ({"visibilitytimeout": 4, "messagettl": 5}, None),
    ({"visibilitytimeout": WEEK_S, "messagettl": -1}, None),
    ({"visibilitytimeout": WEEK_S, "messagettl": WEEK_S + 1}, None),
]


@pytest.mark.parametrize(("parameters", "code"), PUTS, ids=range(len(PUTS)))
def test_numbers_of_put_message(
    queues: Client, parameters: dict[str, object], code: str | None
) -> None:
    """Q-PUT-03, Q-PUT-04, Q-PUT-05, Q-PUT-06."""
    expect(post(queues, document("x"), **parameters), 400 if code else 201, code)
    assert count(queues, "edge") == (code is None)


GETS = [
    *((f"numofmessages={n}", code) for n, code in ((0, OUT), (1, None), (32, None), (33, OUT),
                                                   (-1, OUT), ("x", INVALID), ("", None))),
    *((f"visibilitytimeout={n}", code) for n, code in ((0, OUT), (1, None), (WEEK_S, None),
                                                       (WEEK_S + 1, OUT), ("x", INVALID))),
    ("numofmessages=1&numofmessages=1", INVALID),
    ("peekonly=true&numofmessages=33", OUT),
    ("peekonly=true&peekonly=true", INVALID),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), GETS)
def test_numbers_of_get_messages(queues: Client, text: str, code: str | None) -> None:
    """Q-GET-03, Q-GET-04, Q-PEK-02."""
    expect(queues.get(f"/edge/messages?{text}"), 400 if code else 200, code)


TEXTS = [
    *((("x" * n), n <= 65_536) for n in (65_535, 65_536, 65_537)),
    *((("é" * n), n <= 32_768) for n in (32_768, 32_769)),
    *((("\U0001f600" * n), n <= 16_384) for n in (16_384, 16_385)),
    *((("&" * n), n <= 65_536) for n in (65_536, 65_537)),
    *((text, True) for text in ("", " ", " a ", "\n", "\t", "<a>&\"'", "]]>", "\ufeffx",
                                "\x85\u2028", "e\u0301", "\U0010ffff", "&amp;lt;")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fits"), TEXTS, ids=range(len(TEXTS)))
def test_a_text_comes_back_or_is_too_large(queues: Client, text: str, fits: bool) -> None:
    """Q-PUT-07, Q-PUT-08, Q-UPD-02: after a put, and after an update."""
    made = put(queues, "edge", "first")
    answers = post(queues, document(text)), update(queues, "edge", made, text)
    for answer, status in zip(answers, (201, 204), strict=True):
        expect(answer, status if fits else 413, None if fits else "RequestBodyTooLarge")
    assert [message.text or "" for message in peek(queues, "edge")] == (
        [text, text] if fits else ["first"]
    )


TEXT = "<MessageText>a</MessageText>"
WHOLE = f"<QueueMessage>{TEXT}</QueueMessage>"
XML = "InvalidXmlDocument"
BODIES: list[tuple[str | bytes, str | None]] = [
    # body, code
    (WHOLE + " " * (524_288 - len(WHOLE)), None),
    (WHOLE + " " * (524_289 - len(WHOLE)), "RequestBodyTooLarge"),
    ("", XML), ("  ", XML), ("{}", XML), ("<X/>", XML), (WHOLE + "<X/>", XML), (WHOLE.lower(), XML),
    ("<QueueMessage/>", "MissingRequiredXmlNode"),
    (f"<QueueMessage>{TEXT}{TEXT}</QueueMessage>", XML),
    (WHOLE.replace("a<", "a<b/><"), "UnsupportedXmlNode"),
    ("<QueueMessage><A/></QueueMessage>", "UnsupportedXmlNode"),
    (WHOLE.replace("a<", "<![CDATA[<a>&amp;]]><"), None),
    (WHOLE.replace("a<", "a<!-- c -->b<"), None),
    ('<!DOCTYPE x [<!ENTITY a "b">]>' + WHOLE.replace("a<", "&a;<"), XML),
    *((WHOLE.replace("a<", f"{text}<"), XML) for text in ("&nbsp;", "&#0;", "&#1;", "&#xD800;",
                                                          "&#xFFFE;", "&#x110000;", "]]>", "\x01")),
    (WHOLE.replace("a<", "&#x10FFFF;&#13;<"), None),
    ("\ufeff" + WHOLE, None),
    (('<?xml version="1.0" encoding="utf-16"?>' + WHOLE).encode("utf-16"), None),
    (WHOLE.replace("a<", "é<").encode("latin-1"), XML),
    (WHOLE.encode().replace(b"a<", b"\xed\xa0\x80<"), XML),
    ("<QueueMessage>" + "<a>" * 100_000, "UnsupportedXmlNode"),
    ("<QueueMessage><MessageText>" + "<a>" * 100_000, "UnsupportedXmlNode"),
    ("<" + "Q" * 500_000 + "/>", XML),
    (f"<QueueMessage><MessageText>{'<!---->x' * 60_000}</MessageText></QueueMessage>", None),
    ("<QueueMessage " + " ".join(f'a{n}="1"' for n in range(40_000)) + f">{TEXT}</QueueMessage>",
     None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code"), BODIES, ids=range(len(BODIES)))
def test_documents(queues: Client, body: str | bytes, code: str | None) -> None:
    """Q-PUT-08, Q-PUT-09."""
    answer = post(queues, body.encode() if isinstance(body, str) else body)
    expect(answer, 413 if code == "RequestBodyTooLarge" else 400 if code else 201, code)
    if code == "RequestBodyTooLarge":
        assert answer.xml.findtext("MaxLimit") == "524288"


def test_receipts_that_are_none(queues: Client) -> None:
    """Q-POP-01, Q-UPD-03: none of them ends the message, nor its receipt."""
    made = put(queues, "edge")
    receipt = made.receipt or ""
    other = "B" if receipt[0] == "A" else "A"
    for text in (
        *("", "invalid", f" {receipt}", f"{receipt}A", receipt[:-1], other + receipt[1:]),
        *(receipt[:20] + other + receipt[21:], f"{receipt}=", f"{receipt}\n", "\0", "\U0001f600"),
        "A" * 10_000,
    ):
        where = f"/edge/messages/{made.id}?popreceipt={quote(text, safe='')}"
        if text != receipt:
            expect(queues.delete(where), 400, INVALID)
            expect(queues.put(f"{where}&visibilitytimeout=0"), 400, INVALID)
    twice = f"/edge/messages/{made.id}?popreceipt={receipt}&popreceipt={receipt}"
    expect(queues.delete(twice), 400, INVALID)
    expect(queues.delete(f"/edge/messages/{made.id}"), 400, "MissingRequiredQueryParameter")
    expect(delete(queues, "edge", made), 204)


def test_receipts_of_others(queues: Client) -> None:
    """Q-POP-03: of another message, of another queue, of one of this name that is gone."""
    expect(queues.put("/other"), 201)
    first, second = put(queues, "edge"), put(queues, "edge")
    elsewhere = put(queues, "other")
    for message_id, receipt in (
        (first.id, second.receipt),
        (second.id, first.receipt),
        (first.id, elsewhere.receipt),
        ("62acfeee-e4a7-4a95-8e1f-64d411bf7143", first.receipt),
        ("no-guid", first.receipt),
        ("x" * 5000, first.receipt),
    ):
        expect(queues.delete(one("edge", message_id, receipt)), 404, "MessageNotFound")
    expect(queues.delete(one("other", first.id, first.receipt)), 404, "MessageNotFound")
    # A GUID is the same in any case.
    expect(queues.delete(one("edge", first.id.upper(), first.receipt)), 204)
    expect(queues.delete("/edge"), 204)
    expect(queues.put("/edge"), 201)
    expect(delete(queues, "edge", second), 404, "MessageNotFound")


def test_a_message_without_its_id_does_not_clear_the_queue(queues: Client) -> None:
    """Q-DEL-03: `DELETE /queue/messages/?popreceipt=...` is no Clear Messages."""
    made = put(queues, "edge")
    put(queues, "edge")
    for path in ("/edge/messages/", "/edge/messages"):
        answer = queues.delete(f"{path}?popreceipt={quote(made.receipt or '', safe='')}")
        expect(answer, 400, INVALID)
        assert answer.xml.findtext("QueryParameterName") == "popreceipt"
    assert count(queues, "edge") == 2
    expect(queues.delete("/edge/messages"), 204)
    assert count(queues, "edge") == 0


def test_the_edges_of_time(running: Running, queues: Client) -> None:
    """Q-GET-04, Q-GET-06, Q-PUT-04, Q-UPD-04."""
    soon = put(queues, "edge", "soon", messagettl=10)
    expect(update(queues, "edge", soon, seconds=11), 400, OUT)
    running.advance(9)
    assert [message.text for message in peek(queues, "edge")] == ["soon"]
    running.advance(2)
    assert peek(queues, "edge") == get(queues, "edge") == []
    expect(update(queues, "edge", soon), 404, "MessageNotFound")
    expect(delete(queues, "edge", soon), 404, "MessageNotFound")

    put(queues, "edge", "hidden", messagettl=10)
    (hidden,) = get(queues, "edge", visibilitytimeout=WEEK_S)
    running.advance(11)
    expect(delete(queues, "edge", hidden), 404, "MessageNotFound")

    put(queues, "edge", "for ever", messagettl=-1, visibilitytimeout=WEEK_S)
    running.advance(WEEK_S - 1)
    assert peek(queues, "edge") == []
    running.advance(2)
    (held,) = get(queues, "edge", visibilitytimeout=WEEK_S)
    assert held.expires == "Fri, 31 Dec 9999 23:59:59 GMT"
    expect(update(queues, "edge", held, seconds=WEEK_S), 204)
    running.advance(WEEK_S + 1)
    running.advance(20 * 365 * 86_400)
    assert [message.text for message in peek(queues, "edge")] == ["for ever"]


@pytest.mark.parametrize("value", ["0", "61", "-1", "x", "1.5", "\xb2"])
def test_how_long_one_may_wait(queues: Client, value: str) -> None:
    """Q-GET-08."""
    answer = queues.get("/edge/messages", {"x-strongroom-wait": value})
    expect(answer, 400, "InvalidHeaderValue")


@pytest.mark.parametrize("value", ["0", "-1", "x", "", "1.5", "%D9%A1"])
def test_a_timeout_is_a_number_of_seconds(queues: Client, value: str) -> None:
    """Q-ADR-08."""
    expect(queues.get(f"/edge/messages?timeout={value}"), 400, INVALID)
    expect(post(queues, document("x"), timeout=value), 400, INVALID)
    assert count(queues, "edge") == 0


def test_who_takes_longer_than_allowed_is_told(queues: Client) -> None:
    """Q-ADR-08: a timed-out request takes no message."""
    answer = queues.get("/edge/messages?timeout=1", {"x-strongroom-wait": "5"})
    expect(answer, 500, "OperationTimedOut")
    put(queues, "edge", "kept")
    assert [message.text for message in get(queues, "edge", timeout=30)] == ["kept"]


def test_a_list_of_a_queue_is_what_its_messages_say(queues: Client) -> None:
    """Q-GET-01: 32 of the largest in one answer."""
    made: list[Message] = [
        put(queues, "edge", f"{n:02}" + "\U0001f600" * 16_000) for n in range(32)
    ]
    found = messages(queues.get(target("edge", numofmessages=32)))
    assert [message.id for message in found] == [message.id for message in made]


def test_what_every_answer_has(queues: Client) -> None:
    """Q-SVC-06."""
    for asked, status, code in (
        ("/edge/messages", 200, None),
        ("/none/messages", 404, "QueueNotFound"),
        ("/edge?comp=x", 400, INVALID),
    ):
        answer = queues.get(asked, {"x-ms-client-request-id": "mine", "x-ms-version": "2019-02-02"})
        expect(answer, status, code)
        assert answer["Server"].startswith("Windows-Azure-Queue/1.0 ")
        assert answer["x-ms-version"] == "2019-02-02"
        assert answer["x-ms-client-request-id"] == "mine"
        old = queues.get(
            asked, {"x-ms-version": "2015-12-11", "x-ms-client-request-id": "x" * 1025}
        )
        assert (old.status, old.code, old.get("x-ms-client-request-id")) == (status, None, None)
