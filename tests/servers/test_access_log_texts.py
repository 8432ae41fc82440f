"""What the access log shows of a client's texts: bounded, printable, and without signatures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.servers.access_log.record import (
    AccessRecord,
    IdentityField,
    Properties,
    line_of,
)
from strongroom.servers.access_log.texts import (
    TEXT_BYTES_MAX,
    ObjectNames,
    cut,
    shown_query,
    without_signatures,
)

PLAIN, HASH, OFF = ObjectNames.PLAIN, ObjectNames.HASH, ObjectNames.OFF


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("restype=container&comp=list", "restype=container&comp=list"),
        ("sv=2021-12-02&sp=r&sig=SECRET", "sv=2021-12-02&sp=r&sig=-"),
        ("SIG=SECRET", "sig=-"),
        ("s%69g=SECRET", "sig=-"),
        ("%73ig=SECRET=a=b", "sig=-"),
        ("sv=1&amp;sig=SECRET", "sv=1&-"),
        ("timeout=5%26sig%3DSECRET", "timeout=5%26sig%3D-"),
        ("timeout=5%2526sig%253DSECRET", "timeout=5%2526sig%253D-"),
        ("sig%3DSECRET", "-"),
        ("SECRET", "-"),
        ("SECRET=SECRET", "-"),
        ("$filter=Password%20eq%20'SECRET'", "-"),
        ("where=a%3D'SECRET'", "-"),
        ("popreceipt=SECRET", "-"),
        ("NextPartitionKey=SECRET", "-"),
        ("prefix=dir/", "prefix=dir/"),
        ("", ""),
        ("&", "&"),
    ],
)
def test_parameters_that_may_be_secret_are_not_shown(query: str, shown: str) -> None:
    assert shown_query(query, PLAIN) == shown


@pytest.mark.parametrize("names", [HASH, OFF])
@pytest.mark.parametrize("name", ["prefix", "marker", "startFrom"])
def test_parameters_with_names_are_hidden_as_names_are(names: ObjectNames, name: str) -> None:
    assert shown_query(f"comp=list&{name}=secret/plans", names) == f"comp=list&{name.lower()}=-"


@pytest.mark.parametrize(
    "text",
    [
        "agent sig=SECRET",
        "a?sig=SECRET",
        "a&SIG=SECRET",
        "a;sig[]=SECRET",
        "%3Fsig%3DSECRET",
        "sig=SECRET",
    ],
)
def test_a_signature_in_any_text_is_hidden(text: str) -> None:
    assert "SECRET" not in without_signatures(text)


@pytest.mark.parametrize("text", ["design=1", "signal", "a sigh", "sig", "assign=x"])
def test_other_words_stay(text: str) -> None:
    assert without_signatures(text) == text


@given(st.text(max_size=3 * TEXT_BYTES_MAX))
def test_texts_are_cut_at_their_length_in_utf_8(text: str) -> None:
    assert len(cut(text).encode("utf-8")) <= TEXT_BYTES_MAX


@pytest.mark.parametrize("char", ["x", "\xe4", "\u20ac", "\U0001f511"])
def test_a_long_text_keeps_its_beginning(char: str) -> None:
    found = cut(char * 64 * 1024)
    assert found == char * (TEXT_BYTES_MAX // len(char.encode()))


def test_a_long_query_is_cut_before_it_is_read() -> None:
    assert (
        shown_query("prefix=" + "x" * 70_000, PLAIN) == ("prefix=" + "x" * 70_000)[:TEXT_BYTES_MAX]
    )


def line(text: str) -> bytes:
    properties = Properties(user_agent_header=cut(text), object_key=cut(text))
    identity = IdentityField("Anonymous")
    record = AccessRecord(
        "", "", "", "", 200, "", 0.0, "", "", "HTTP", cut(text), identity, properties
    )
    return line_of(record)


@given(st.text(alphabet=st.characters(), max_size=50))
def test_a_line_is_printable_ascii_and_gives_the_text_back(text: str) -> None:
    written = line(text)
    assert written.endswith(b"\n")
    assert all(0x20 <= byte < 0x7F for byte in written[:-1])
    assert json.loads(written)["uri"] == cut(text)


@pytest.mark.parametrize(
    "text", ["a\nb", "\x1b[2J", "\x7f", "\x9b2J", "\u2028", '"}{"', "\\", "\ud800", "\U0010ffff"]
)
def test_hostile_texts_stay_in_one_line(text: str) -> None:
    written = line(text)
    assert written.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in written[:-1])
    assert json.loads(written)["uri"] == text.encode("utf-8", "replace").decode()
