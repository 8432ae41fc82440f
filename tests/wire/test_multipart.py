"""Batches: the parts in their bytes, the refusal of invalid bytes, the answers."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.slices import run_to_completion
from strongroom.wire.core import multipart
from strongroom.wire.core.multipart import Batch, PartRequest, PartResponse
from tests.refusals import outcome

MIXED = "multipart/mixed; boundary=batch_1"
PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
INSERT = (
    "POST https://a.example.com/t1 HTTP/1.1\r\nContent-Type: application/json\r\n"
    'Prefer: return-no-content\r\n\r\n{"PartitionKey":"p","RowKey":"r"}'
)
DELETE = "DELETE /acct/t1(PartitionKey='p',RowKey='s') HTTP/1.1\r\nIf-Match: *\r\n\r\n"


def changeset(*requests: str, part: str = PART) -> str:
    inner = "".join(f"--changeset_2\r\n{part}\r\n{request}\r\n" for request in requests)
    head = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n"
    return f"{head}{inner}--changeset_2--\r\n\r\n--batch_1--\r\n"


def query(request: str) -> str:
    return f"--batch_1\r\n{PART}\r\n{request}\r\n--batch_1--"


def parsed(text: str, content_type: str = MIXED, requests_max: int = 100) -> Batch:
    return run_to_completion(multipart.parse(content_type, text.encode("latin-1"), requests_max))


INSERTED = PartRequest(
    "POST",
    "https://a.example.com/t1",
    (("Content-Type", "application/json"), ("Prefer", "return-no-content")),
    b'{"PartitionKey":"p","RowKey":"r"}',
)
DELETED = PartRequest("DELETE", "/acct/t1(PartitionKey='p',RowKey='s')", (("If-Match", "*"),))


def test_a_changeset_holds_requests_in_order() -> None:
    assert parsed(changeset(INSERT, DELETE)) == Batch((INSERTED, DELETED), True)


def test_a_query_stands_by_itself() -> None:
    found = parsed(query("GET /acct/t1() HTTP/1.1\r\nAccept: application/json\r\n\r\n"))
    asked = PartRequest("GET", "/acct/t1()", (("Accept", "application/json"),))
    assert found == Batch((asked,), False)


def test_lines_may_end_with_lf_alone() -> None:
    assert parsed(changeset(INSERT, DELETE).replace("\r\n", "\n")) == Batch(
        (INSERTED, DELETED), True
    )


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/mixed;boundary=batch_1",
        'Multipart/Mixed; charset=utf-8; Boundary="batch_1"',
        "multipart/mixed; boundary=batch_1; charset=utf-8",
    ],
)
def test_a_boundary_may_be_given_in_several_forms(content_type: str) -> None:
    assert len(parsed(changeset(INSERT), content_type).requests) == 1


def test_what_stands_around_the_parts_is_ignored() -> None:
    text = f"This is a batch.\r\n{changeset(INSERT)}--batch_1\r\nand more"
    assert parsed(text) == Batch((INSERTED,), True)


def test_a_boundary_is_only_one_at_the_beginning_of_a_line_and_whole() -> None:
    body = '{"a":"--changeset_2"}\r\n --changeset_2\r\n--changeset_23\r\n--changeset_2-\r\n{}'
    found = parsed(changeset(f"POST /t HTTP/1.1\r\n\r\n{body}"))
    assert found.requests[0].body.decode() == body


def test_a_boundary_may_have_spaces_behind_it() -> None:
    text = changeset(INSERT).replace("--changeset_2\r\n", "--changeset_2 \t\r\n")
    assert parsed(text) == Batch((INSERTED,), True)


@pytest.mark.parametrize(
    "text",
    [
        changeset(DELETE, part=PART + "Content-ID: 7\r\n"),
        changeset(DELETE.replace("If-Match", "content-id: 7\r\nIf-Match")),
    ],
)
def test_a_content_id_may_be_the_part_s_or_the_request_s(text: str) -> None:
    assert parsed(text).requests[0].content_id == "7"


def test_a_content_length_bounds_the_body() -> None:
    found = parsed(changeset("POST /t HTTP/1.1\r\nContent-Length: 4\r\n\r\n{}\r\nmore"))
    assert found.requests[0].body == b"{}\r\n"


def test_a_request_line_may_lack_its_protocol_and_come_late() -> None:
    assert parsed(changeset("\r\n\r\nGET /t\r\n\r\n")).requests[0].url == "/t"


def test_header_values_keep_their_bytes() -> None:
    found = parsed(changeset("GET /t HTTP/1.1\r\nX-A:  \xc3\xa9 \t b \r\nX-B:\r\n\r\n"))
    assert found.requests[0].headers == (("X-A", "\xc3\xa9 \t b"), ("X-B", ""))


def test_reading_ends_beyond_the_bound() -> None:
    text = changeset(*[DELETE] * 9)
    assert len(parsed(text, requests_max=3).requests) == 4
    assert len(parsed(text, requests_max=9).requests) == 9


ONE = changeset(INSERT)
MALFORMED = [
    ("", "--batch_1-- "),
    ("--batch_1--", "empty"),
    ("--batch_1", "--batch_1--"),
    (ONE.replace("--batch_1--", ""), "--batch_1--, is missing"),
    (ONE.replace("--changeset_2--", ""), "--changeset_2--, is missing"),
    (ONE.replace("--batch_1--", "--batch_1") + ONE, "one changeset"),
    (query(INSERT).replace("--batch_1--", "--batch_1\r\n\r\n--batch_1--"), "one changeset"),
    ("--batch_1\r\n--batch_1--", "A part of the batch is empty"),
    ("--batch_1\r\n\r\n--batch_1--", "must have Content-Type"),
    (changeset(), "The changeset is empty"),
    (ONE.replace("; boundary=changeset_2", ""), "needs a boundary"),
    (ONE.replace("; boundary=changeset_2", f"; boundary={'c' * 71}"), "needs a boundary"),
    (ONE.replace("; boundary=changeset_2", '; boundary="a\x7f"'), "is no header field"),
    (ONE.replace("application/http", "text/plain"), "must have Content-Type: application/http"),
    (ONE.replace(": binary", ": base64"), "'base64' is not supported"),
    (ONE.replace("POST https", "POST"), "is no request line"),
    (ONE.replace("POST https://a.example.com/t1 HTTP/1.1", "POST /t1 HTTP/2"), "no request line"),
    (ONE.replace("POST https", "post https"), "is no request line"),
    (ONE.replace("/t1 HTTP", "/t 1 HTTP"), "is no request line"),
    (ONE.replace("Prefer:", "Prefer :"), "is no header field"),
    (ONE.replace("Prefer:", "Prefer"), "is no header field"),
    (ONE.replace("Prefer:", " folded:"), "is no header field"),
    (ONE.replace("no-content", "no-\x00content"), "is no header field"),
    (ONE.replace("no-content", "no-\rcontent"), "is no header field"),
    (ONE.replace("Prefer: r", "A: b\r\n" * 64 + "Prefer: r"), "too many fields"),
    (ONE.replace("Prefer: r", "Prefer: " + "r" * 40000), "too long"),
    (ONE.replace("Prefer: r", "Content-Length: 34\r\nPrefer: r"), "The Content-Length '34'"),
    (ONE.replace("Prefer: r", "Content-Length: -1\r\nPrefer: r"), "The Content-Length '-1'"),
    (ONE.replace("Prefer: r", "Content-Length: ²\r\nPrefer: r"), "The Content-Length"),
    (changeset("\r\n\r\n"), "is no request line"),
]


@pytest.mark.parametrize(("text", "what"), MALFORMED)
def test_what_is_no_batch_is_refused(text: str, what: str) -> None:
    with pytest.raises(StorageError) as caught:
        parsed(text)
    assert (caught.value.row.code, caught.value.row.status) == ("InvalidInput", 400)
    assert what.strip() in caught.value.message


def test_lines_made_to_be_slow_are_read_in_one_pass() -> None:
    spaces = "A:" + " " * 32_000
    for line in (f"{spaces}\x00", f"{spaces}b", "POST " + " " * 32_000 + "x y", "a" * 32_000):
        text = ONE.replace("Prefer", f"{line}\r\nPrefer")
        assert outcome(partial(parsed, text)) in ("ok", "400 InvalidInput")
    kind = "multipart/mixed; " + "boundary=" * 7000 + '"'
    assert outcome(lambda: parsed(ONE, kind)) == "400 InvalidInput"
    padded = ONE.replace("--changeset_2\r\n", "--changeset_2" + " " * 1_000_000 + "x\r\n")
    assert outcome(lambda: parsed(padded)) == "400 InvalidInput"


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "multipart/mixed", "multipart/form-data; boundary=b"]
)
def test_another_content_type_is_refused(content_type: str) -> None:
    assert outcome(lambda: parsed(ONE, content_type)) == "400 InvalidInput"


def test_answers_to_a_changeset() -> None:
    answers = [
        PartResponse(204, (("ETag", 'W/"1"'), ("DataServiceVersion", "3.0;")), content_id="1"),
        PartResponse(201, (("Content-Type", "application/json"),), b'{"a":1}'),
    ]
    content_type, body = run_to_completion(multipart.write(answers, True, "B", "C"))
    assert content_type == "multipart/mixed; boundary=batchresponse_B"
    assert body.decode() == (
        "--batchresponse_B\r\n"
        "Content-Type: multipart/mixed; boundary=changesetresponse_C\r\n"
        "\r\n"
        "--changesetresponse_C\r\n"
        "Content-Type: application/http\r\n"
        "Content-Transfer-Encoding: binary\r\n"
        "\r\n"
        "HTTP/1.1 204 No Content\r\n"
        "Content-ID: 1\r\n"
        'ETag: W/"1"\r\n'
        "DataServiceVersion: 3.0;\r\n"
        "\r\n"
        "\r\n"
        "--changesetresponse_C\r\n"
        "Content-Type: application/http\r\n"
        "Content-Transfer-Encoding: binary\r\n"
        "\r\n"
        "HTTP/1.1 201 Created\r\n"
        "Content-Type: application/json\r\n"
        "\r\n"
        '{"a":1}\r\n'
        "--changesetresponse_C--\r\n"
        "--batchresponse_B--\r\n"
    )


def test_the_answer_to_a_query_stands_by_itself() -> None:
    _, body = run_to_completion(multipart.write([PartResponse(200, (), b"{}")], False, "B", "C"))
    assert body.decode() == (
        "--batchresponse_B\r\n"
        "Content-Type: application/http\r\n"
        "Content-Transfer-Encoding: binary\r\n"
        "\r\n"
        "HTTP/1.1 200 OK\r\n"
        "\r\n"
        "{}\r\n"
        "--batchresponse_B--\r\n"
    )


def each(*requests: str, part: str = PART) -> str:
    """A batch whose requests stand by themselves."""
    inner = "".join(f"--batch_1\r\n{part}\r\n{request}\r\n" for request in requests)
    return f"{inner}--batch_1--\r\n"


def parsed_each(text: str, content_type: str = MIXED, most: int = 256) -> tuple[PartRequest, ...]:
    return run_to_completion(
        multipart.parse_independent(content_type, text.encode("latin-1"), most)
    )


PLAIN = PartRequest("DELETE", "/c/b", (("x-ms-date", "now"),))
# As clients write them: the Python, JavaScript, .NET and Rust ones.
WRITTEN = [
    "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
    "Content-ID: 0\r\n\r\nDELETE /c/b HTTP/1.1\r\nx-ms-date: now\r\n\r\n\r\n--batch_1--\r\n",
    "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
    "Content-ID: 0\r\n\r\nDELETE /c/b HTTP/1.1\r\nx-ms-date: now\r\n\r\n--batch_1--",
    "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
    "Content-ID: 0\r\n\r\nDELETE /c/b HTTP/1.1\r\nx-ms-date:now\r\n\r\n\r\n--batch_1--",
    "\r\n--batch_1\ncontent-type: application/http\ncontent-transfer-encoding: binary\n"
    "content-id: 0\n\nDELETE /c/b HTTP/1.1\nx-ms-date: now\n\n\n--batch_1--\n",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_requests_that_stand_by_themselves(text: str) -> None:
    (found,) = parsed_each(text)
    assert found == msgspec.structs.replace(PLAIN, content_id="0")


def test_many_requests_keep_their_order() -> None:
    found = parsed_each(each(*[f"DELETE /c/{number}" for number in range(300)]), most=256)
    assert [one.url for one in found] == [f"/c/{number}" for number in range(257)]


SINGLE = each("DELETE /c/b HTTP/1.1\r\nx-ms-date: now\r\n\r\n")
BROKEN = [
    "",
    "--batch_1--",
    "--batch_1\r\n\r\n--batch_1--",
    SINGLE.replace("--batch_1--", ""),
    SINGLE.replace("--batch_1", "--batch_2"),
    SINGLE.replace("application/http", "multipart/mixed; boundary=c"),
    SINGLE.replace("application/http", "text/plain"),
    SINGLE.replace("Content-Type", "Content-Kind"),
    SINGLE.replace(": binary", ": base64"),
    SINGLE.replace("DELETE", "delete"),
    SINGLE.replace(" HTTP/1.1", " HTTP/3"),
    SINGLE.replace("x-ms-date", "x ms date"),
    SINGLE.replace("now", "n\x00w"),
    SINGLE.replace("now", "n" * 33_000),
    SINGLE.replace("x-ms-date: now", "Content-Length: 1\r\nContent-Length: 1"),
    SINGLE.replace("x-ms-date: now", "Content-Length: 77"),
    SINGLE.replace("x-ms-date: now", "Content-Length: " + "9" * 5000),
    SINGLE.replace("x-ms-date: now", "\r\n".join(f"a{number}: b" for number in range(65))),
    changeset(DELETE),
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_batch_of_requests_is_refused(text: str) -> None:
    assert outcome(lambda: parsed_each(text)) == "400 InvalidInput"


def test_ten_mebibytes_are_read_in_one_pass() -> None:
    size = 10 * 1024 * 1024
    for filler in ("\r\n--batch_1 ", "-", "\r\n", "\r", "--batch_1\r\n", "\t", "a: b\r\n"):
        text = f"--batch_1\r\n{PART}\r\n{filler * (size // len(filler))}"
        assert outcome(partial(parsed_each, text)) == "400 InvalidInput"


def test_answers_to_requests_that_stand_by_themselves() -> None:
    answers = [
        PartResponse(202, (("x-ms-request-id", "1"),), content_id="0"),
        PartResponse(404, (("Content-Length", "4"),), b"<E/>", reason="There is none."),
    ]
    content_type, body = run_to_completion(multipart.write_independent(answers, "B"))
    assert content_type == "multipart/mixed; boundary=batchresponse_B"
    assert body.decode() == (
        "--batchresponse_B\r\n"
        "Content-Type: application/http\r\n"
        "Content-ID: 0\r\n"
        "\r\n"
        "HTTP/1.1 202 Accepted\r\n"
        "x-ms-request-id: 1\r\n"
        "\r\n"
        "\r\n"
        "--batchresponse_B\r\n"
        "Content-Type: application/http\r\n"
        "\r\n"
        "HTTP/1.1 404 There is none.\r\n"
        "Content-Length: 4\r\n"
        "\r\n"
        "<E/>\r\n"
        "--batchresponse_B--"
    )


PIECES = (
    *("--batch_1", "--batch_1--", "--changeset_2", "--changeset_2--", "\r\n", "\n", "\r", " ", ":"),
    *("Content-Type: multipart/mixed; boundary=changeset_2", "Content-Type: application/http"),
    *("Content-Transfer-Encoding: binary", "Content-Length: 3", "POST /t HTTP/1.1", "{}", "\x00é"),
)


@given(
    st.one_of(
        st.text(st.characters(max_codepoint=255)),
        st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
        st.lists(st.sampled_from(PIECES), max_size=30).map("\r\n".join),
    )
)
def test_any_bytes_are_a_batch_or_refused(text: str) -> None:
    assert outcome(lambda: parsed(text)) in ("ok", "400 InvalidInput")
    assert outcome(lambda: parsed_each(text)) in ("ok", "400 InvalidInput")


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), st.integers(0, 400))
def test_a_batch_with_something_put_into_it_is_a_batch_or_refused(
    pieces: list[str], at: int
) -> None:
    text = each(DELETE, "DELETE /c/b")
    changed = text[:at] + "\r\n".join(pieces) + text[at:]
    assert outcome(lambda: parsed_each(changed)) in ("ok", "400 InvalidInput")


@given(st.text(st.characters(max_codepoint=255), max_size=100))
def test_any_content_type_is_taken_or_refused(content_type: str) -> None:
    kind = f"multipart/mixed; boundary={content_type}"
    assert outcome(lambda: parsed(ONE, kind)) in ("ok", "400 InvalidInput")
