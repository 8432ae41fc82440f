"""Messages over HTTP: every operation, its errors with their elements, its limits and values
above."""

from __future__ import annotations

import time

import pytest

from tests.conformance.answer import GUID, RFC1123, Answer, expect, expect_names
from tests.conformance.client import Client, raw
from tests.conformance.messages import (
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
NEVER = "Fri, 31 Dec 9999 23:59:59 GMT"


def post(client: Client, queue: str, body: bytes, **parameters: object) -> Answer:
    return client.send("POST", target(queue, **parameters), (), body)


def test_what_put_message_answers(queues: Client, queue: str) -> None:
    """Q-PUT-01, Q-PUT-04."""
    answer = expect(post(queues, queue, document("text")), 201)
    assert answer["Content-Type"] == "application/xml"
    assert [child.tag for child in answer.xml[0]] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"),
    ]
    (message,) = messages(answer)
    assert GUID.fullmatch(message.id)
    for text in (message.inserted, message.expires, message.visible):
        assert text is not None and RFC1123.fullmatch(text)
    assert put(queues, queue, messagettl=-1).expires == NEVER
    assert put(queues, queue, messagettl=10**18 - 1).expires == NEVER
    far = put(queues, queue, messagettl=2**33)
    assert RFC1123.fullmatch(far.expires or "") and far.expires != NEVER
    old = {"x-ms-version": "2015-12-11"}
    assert expect(queues.send("POST", target(queue), old, document("x")), 201).body == b""


def test_what_get_and_peek_answer(queues: Client, queue: str) -> None:
    """Q-GET-01, Q-GET-02, Q-PEK-01."""
    made = put(queues, queue, "text")
    answer = expect(queues.get(target(queue, peekonly="true")), 200)
    assert [child.tag for child in answer.xml[0]] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "DequeueCount", "MessageText"),
    ]
    assert (messages(answer)[0].count, messages(answer)[0].text) == (0, "text")
    answer = expect(queues.get(target(queue)), 200)
    assert [child.tag for child in answer.xml[0]] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"),
        *("DequeueCount", "MessageText"),
    ]
    (got,) = messages(answer)
    assert (got.id, got.inserted, got.expires, got.count) == (
        *(made.id, made.inserted, made.expires),
        1,
    )
    assert got.receipt != made.receipt
    empty = expect(queues.get(target(queue)), 200)
    assert empty.body.endswith(b"<QueueMessagesList />")


def test_a_message_comes_back_with_a_higher_count(
    server: Running, queues: Client, queue: str
) -> None:
    """Q-GET-02: a poison message shows by its count."""
    put(queues, queue)
    receipts = set()
    for times in range(1, 6):
        (got,) = get(queues, queue, visibilitytimeout=40)
        assert got.count == times
        receipts.add(got.receipt)
        assert get(queues, queue) == []
        server.advance(41)
    assert len(receipts) == 5
    assert peek(queues, queue)[0].count == 5


def test_the_default_visibility_is_half_a_minute(
    server: Running, queues: Client, queue: str
) -> None:
    """Q-GET-02."""
    put(queues, queue)
    get(queues, queue)
    server.advance(28)
    assert get(queues, queue) == []
    server.advance(3)
    assert len(get(queues, queue)) == 1


def test_first_in_first_out(server: Running, queues: Client, queue: str) -> None:
    """Q-GET-05."""
    for number in range(35):
        put(queues, queue, str(number))
    assert [m.text for m in get(queues, queue, numofmessages=32)] == [str(n) for n in range(32)]
    server.advance(31)
    found = [m.text for m in get(queues, queue, numofmessages=32)]
    assert found == [*("32", "33", "34"), *(str(n) for n in range(29))]


def test_a_message_may_be_put_for_later(server: Running, queues: Client, queue: str) -> None:
    """Q-PUT-03, Q-QUE-04."""
    put(queues, queue, visibilitytimeout=100)
    assert get(queues, queue) == peek(queues, queue) == []
    assert count(queues, queue) == 1
    server.advance(101)
    assert len(peek(queues, queue)) == len(get(queues, queue)) == 1


def test_an_expired_message_is_gone(server: Running, queues: Client, queue: str) -> None:
    """Q-GET-04, Q-GET-06, Q-PUT-04, Q-POP-02."""
    put(queues, queue, "week")
    put(queues, queue, "never", messagettl=-1)
    short = put(queues, queue, "short", messagettl=60)
    held = get(queues, queue, numofmessages=32, visibilitytimeout=WEEK_S)
    assert len(held) == 3
    server.advance(61)
    expect(update(queues, queue, held[2]), 404, "MessageNotFound")
    expect(delete(queues, queue, short), 404, "MessageNotFound")
    server.advance(WEEK_S)
    assert [message.text for message in get(queues, queue, numofmessages=32)] == ["never"]
    assert [message.text for message in peek(queues, queue)] == []


def test_expired_messages_leave_the_count(server: Running, queues: Client, queue: str) -> None:
    """Q-QUE-05: expired messages are not counted even if the queue is never read."""
    for _ in range(70):
        put(queues, queue, messagettl=30)
    put(queues, queue)
    assert count(queues, queue) == 71
    server.advance(40)
    for _ in range(200):
        if count(queues, queue) == 1:
            return
        time.sleep(0.05)
    raise AssertionError(count(queues, queue))


def test_the_numbers_of_put_message(queues: Client, queue: str) -> None:
    """Q-PUT-03, Q-PUT-04, Q-PUT-05, Q-PUT-06."""
    body = document("x")
    for parameters in (
        {"visibilitytimeout": 0, "messagettl": 1},
        {"visibilitytimeout": WEEK_S - 1},
        {"visibilitytimeout": WEEK_S, "messagettl": WEEK_S + 1},
        {"visibilitytimeout": WEEK_S, "messagettl": -1},
        {"messagettl": 2**31 - 1},
        {"messagettl": 2**31},
    ):
        expect(post(queues, queue, body, **parameters), 201)
    out, wrong = "OutOfRangeQueryParameterValue", "InvalidQueryParameterValue"
    for given, code, name, bounds in (
        ({"visibilitytimeout": -1}, out, "visibilitytimeout", ("0", "604800")),
        ({"visibilitytimeout": WEEK_S + 1}, out, "visibilitytimeout", ("0", "604800")),
        ({"messagettl": 0}, out, "messagettl", ("1", "999999999999999999")),
        ({"messagettl": -2}, out, "messagettl", ("1", "999999999999999999")),
        ({"visibilitytimeout": "x"}, wrong, "visibilitytimeout", None),
        ({"messagettl": "1.5"}, wrong, "messagettl", None),
        ({"visibilitytimeout": 5, "messagettl": 5}, wrong, "visibilitytimeout", None),
        ({"visibilitytimeout": WEEK_S}, wrong, "visibilitytimeout", None),
    ):
        refused = expect_names(post(queues, queue, body, **given), 400, code, name)
        assert refused.error["QueryParameterValue"] == str(given[name])
        if bounds is not None:
            found = refused.error["MinimumAllowed"], refused.error["MaximumAllowed"]
            assert found == bounds
    refused = post(queues, queue, body, visibilitytimeout=9, messagettl=5)
    reason = "messagettl must be greater than visibilitytimeout"
    assert refused.error["Reason"] == reason
    old = {"x-ms-version": "2017-04-17"}
    for ttl in (-1, WEEK_S + 1):
        refused = queues.send("POST", target(queue, messagettl=ttl), old, body)
        # Before 2017-07-29 the code is in the body alone.
        assert (refused.status, refused.error["Code"]) == (400, out)
        assert refused.error["MaximumAllowed"] == str(WEEK_S)


@pytest.mark.parametrize("peekonly", ["true", "false"])
def test_the_numbers_of_get_and_peek(queues: Client, queue: str, peekonly: str) -> None:
    """Q-GET-03, Q-PEK-02."""
    for number in range(33):
        put(queues, queue, str(number))
    for wanted in (1, 2, 31):
        answer = expect(queues.get(target(queue, peekonly=peekonly, numofmessages=wanted)), 200)
        assert len(messages(answer)) == min(wanted, 30 if peekonly == "false" else wanted)
    for bad in (0, 33, -1, 10**15):
        refused = queues.get(target(queue, peekonly=peekonly, numofmessages=bad))
        expect(refused, 400, "OutOfRangeQueryParameterValue")
        names = ("QueryParameterName", "QueryParameterValue", "MinimumAllowed", "MaximumAllowed")
        elements = list(refused.error)[-4:]
        assert elements == list(names)
        assert [refused.error[name] for name in names] == ["numofmessages", str(bad), "1", "32"]
    for bad_text in ("x", "1e3", "%20"):
        refused = queues.get(target(queue, peekonly=peekonly, numofmessages=bad_text))
        expect_names(refused, 400, "InvalidQueryParameterValue", "numofmessages")


def test_the_visibility_of_get_messages(queues: Client, queue: str) -> None:
    """Q-GET-04."""
    put(queues, queue)
    for bad in (0, -1, WEEK_S + 1):
        refused = queues.get(target(queue, visibilitytimeout=bad))
        expect_names(refused, 400, "OutOfRangeQueryParameterValue", "visibilitytimeout")
        assert refused.error["MinimumAllowed"] == "1"
    assert len(get(queues, queue, visibilitytimeout=WEEK_S)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t text \n",
        "<b>&amp;</b> ]]>",
        "a&#x0; &lt;",
        "é 漢字 😀 \U0010fffd",
        "x" * 65536,
        "é" * 32768,
        "&" * 65536,
    ],
)
def test_a_text_comes_back_as_it_was(queues: Client, queue: str, text: str) -> None:
    """Q-PUT-07, Q-PUT-08."""
    put(queues, queue, text)
    assert [message.text for message in peek(queues, queue)] == [text]
    (got,) = get(queues, queue)
    assert got.text == text
    expect(delete(queues, queue, got), 204)


def test_line_ends_are_those_of_xml(queues: Client, queue: str) -> None:
    """Q-PUT-07."""
    body = b"<QueueMessage><MessageText>a\r\nb&#13;\nc</MessageText></QueueMessage>"
    expect(post(queues, queue, body), 201)
    answer = queues.get(target(queue))
    assert b"<MessageText>a\nb&#13;\nc</MessageText>" in answer.body


def test_bodies_that_are_no_message(queues: Client, queue: str) -> None:
    """Q-PUT-08, Q-PUT-09, Q-UPD-02, Q-UPD-05: in Put and in Update."""
    made = put(queues, queue, "before")
    where = one(queue, made.id, made.receipt) + "&visibilitytimeout=9"
    for body, status, code in (
        (b"text", 400, "InvalidXmlDocument"),
        (b"<QueueMessage><MessageText>", 400, "InvalidXmlDocument"),
        (b"<Message><MessageText/></Message>", 400, "InvalidXmlDocument"),
        (b"<!DOCTYPE QueueMessage>" + document("x"), 400, "InvalidXmlDocument"),
        (b"<QueueMessage><MessageText>&#2;</MessageText></QueueMessage>", 400,
         "InvalidXmlDocument"),
        (b"<QueueMessage/>", 400, "MissingRequiredXmlNode"),
        (b"<QueueMessage><Text/></QueueMessage>", 400, "UnsupportedXmlNode"),
        (b"<QueueMessage><MessageText><b/></MessageText></QueueMessage>", 400,
         "UnsupportedXmlNode"),
        (document("x" * 65537), 413, "RequestBodyTooLarge"),
        (document("é" * 32769), 413, "RequestBodyTooLarge"),
        (document("") + b" " * 512 * 1024, 413, "RequestBodyTooLarge"),
    ):  # fmt: skip
        expect(post(queues, queue, body), status, code)
        expect(queues.put(where, (), body), status, code)
    expect(post(queues, queue, b""), 400, "InvalidXmlDocument")
    assert [message.text for message in get(queues, queue, numofmessages=32)] == ["before"]


def test_a_body_that_is_too_long_is_refused_before_it_is_sent(queues: Client, queue: str) -> None:
    """Q-PUT-08."""
    size = 600 * 1024
    signed = queues.fields("POST", queues.prefix + target(queue),
                           [("Content-Length", str(size))], b"", "SharedKey")  # fmt: skip
    head = "".join(f"{name}: {value}\r\n" for name, value in signed)
    request = f"POST {queues.prefix}{target(queue)} HTTP/1.1\r\n{head}\r\n"
    answer = raw(queues.port, request.encode(), end=True)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_an_update_moves_and_replaces(server: Running, queues: Client, queue: str) -> None:
    """Q-UPD-01, Q-UPD-02, Q-PUT-02, Q-POP-02."""
    made = put(queues, queue, "one")
    answer = expect(update(queues, queue, made, seconds=100), 204)
    assert answer.body == b"" and RFC1123.fullmatch(answer["x-ms-time-next-visible"])
    second = answer["x-ms-popreceipt"]
    assert second != made.receipt
    assert get(queues, queue) == []
    expect(update(queues, queue, made), 404, "MessageNotFound")
    third = expect(update(queues, queue, made, "two", receipt=second), 204)["x-ms-popreceipt"]
    (got,) = get(queues, queue, visibilitytimeout=5)
    assert (got.text, got.count) == ("two", 1)
    expect(delete(queues, queue, made, third), 404, "MessageNotFound")
    server.advance(60)
    # Visible again and not got since: the receipt still holds.
    expect(update(queues, queue, got, "", seconds=0), 204)
    (again,) = get(queues, queue)
    assert (again.text, again.count) == ("", 2)


def test_the_numbers_of_update_message(queues: Client, queue: str) -> None:
    """Q-UPD-03, Q-UPD-04, Q-UPD-05."""
    made = put(queues, queue, messagettl=60)
    where = f"/{queue}/messages/{made.id}"
    for query, code, name in (
        (f"popreceipt={made.receipt}", "MissingRequiredQueryParameter", "visibilitytimeout"),
        ("visibilitytimeout=1", "MissingRequiredQueryParameter", "popreceipt"),
        (f"popreceipt={made.receipt}&visibilitytimeout=", "InvalidQueryParameterValue",
         "visibilitytimeout"),
        (f"popreceipt={made.receipt}&visibilitytimeout=x", "InvalidQueryParameterValue",
         "visibilitytimeout"),
        (f"popreceipt={made.receipt}&visibilitytimeout=-1", "OutOfRangeQueryParameterValue",
         "visibilitytimeout"),
        (f"popreceipt={made.receipt}&visibilitytimeout=604801", "OutOfRangeQueryParameterValue",
         "visibilitytimeout"),
        (f"popreceipt={made.receipt}&visibilitytimeout=61", "OutOfRangeQueryParameterValue",
         "visibilitytimeout"),
    ):  # fmt: skip
        expect_names(queues.put(f"{where}?{query}"), 400, code, name)
    forever = put(queues, queue, messagettl=-1)
    expect(update(queues, queue, forever, seconds=WEEK_S), 204)
    expect(update(queues, queue, made, seconds=50), 204)


def test_deleting(queues: Client, queue: str) -> None:
    """Q-DEL-01, Q-PUT-02."""
    made = put(queues, queue)
    refused = queues.delete(f"/{queue}/messages/{made.id}")
    expect_names(refused, 400, "MissingRequiredQueryParameter", "popreceipt")
    shouted = queues.delete(one(queue, made.id.upper(), made.receipt))
    assert expect(shouted, 204).body == b""
    expect(delete(queues, queue, made), 404, "MessageNotFound")
    assert get(queues, queue) == [] and count(queues, queue) == 0


def test_clearing(queues: Client, queue: str) -> None:
    """Q-DEL-02."""
    expect(queues.put(f"/{queue}?comp=metadata", {"x-ms-meta-a": "1"}), 204)
    for number in range(40):
        put(queues, queue, str(number), visibilitytimeout=number % 2)
    held = get(queues, queue, numofmessages=5)
    expect(queues.delete(f"/{queue}/messages"), 204)
    assert get(queues, queue, numofmessages=32) == peek(queues, queue) == []
    assert count(queues, queue) == 0
    for message in held:
        expect(delete(queues, queue, message), 404, "MessageNotFound")
        expect(update(queues, queue, message), 404, "MessageNotFound")
    put(queues, queue, "after")
    assert [message.text for message in get(queues, queue, numofmessages=32)] == ["after"]
    assert queues.get(f"/{queue}?comp=metadata")["x-ms-meta-a"] == "1"
    expect(queues.delete(f"/{queue}/messages"), 204)


def test_receipts_that_lead_nowhere(queues: Client, queue: str) -> None:
    """Q-POP-01, Q-POP-03."""
    first, second = put(queues, queue), put(queues, queue)
    assert first.receipt is not None and second.receipt is not None
    expect(queues.put(f"/{queue}-2"), 201)
    elsewhere = put(queues, f"{queue}-2")
    for receipt in (second.receipt, elsewhere.receipt):
        expect(delete(queues, queue, first, receipt), 404, "MessageNotFound")
        expect(update(queues, queue, first, receipt=receipt), 404, "MessageNotFound")
    unknown = "00000000-0000-4000-8000-000000000000"
    for message_id in (unknown, "nonsense", "%00"):
        answer = queues.delete(one(queue, message_id, first.receipt))
        expect(answer, 404, "MessageNotFound")
    altered = ("B" if first.receipt[0] != "B" else "C") + first.receipt[1:]
    for bad in ("invalid", "", first.receipt[:-1], first.receipt + "A", altered, "ä" * 44):
        for answer in (
            queues.delete(one(queue, first.id, bad)),
            queues.put(one(queue, first.id, bad) + "&visibilitytimeout=0"),
        ):
            expect_names(answer, 400, "InvalidQueryParameterValue", "popreceipt")
            assert answer.error["Reason"] == "Invalid pop receipt format"
    assert len(get(queues, queue, numofmessages=32)) == 2


def test_no_two_receipts_are_the_same(server: Running, queues: Client, queue: str) -> None:
    """Q-POP-04."""
    seen = [put(queues, queue).receipt for _ in range(32)]
    for _ in range(5):
        seen += [message.receipt for message in get(queues, queue, numofmessages=32)]
        server.advance(31)
    assert len(set(seen)) == len(seen) == 32 * 6
