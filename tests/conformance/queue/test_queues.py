"""Queues: Create, Delete, Get and Set Metadata, ACL, List; addressing."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names, metadata, texts
from tests.conformance.client import Client
from tests.conformance.messages import count, delete, get, put
from tests.conformance.running import Running
from tests.conformance.sas import account_sas
from tests.conformance.signing import mac

POLICY = (
    "<SignedIdentifiers><SignedIdentifier><Id>{id}</Id><AccessPolicy>"
    "<Start>2020-01-01T00:00:00.0000000Z</Start><Expiry>2099-01-01T00:00:00.0000000Z</Expiry>"
    "<Permission>{letters}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)


def test_creation_says_whether_the_queue_is_new(queues: Client, queue: str) -> None:
    """Q-QUE-01."""
    made = expect(queues.put(f"/{queue}-x", {"x-ms-meta-A": "1", "x-ms-meta-b": "2"}), 201)
    assert made.body == b"" and made.get("ETag") is None
    expect(queues.put(f"/{queue}-x", {"x-ms-meta-B": "2", "x-ms-meta-a": "1"}), 204)
    for other in ({}, {"x-ms-meta-a": "1"}, {"x-ms-meta-a": "1", "x-ms-meta-b": "3"}):
        expect(queues.put(f"/{queue}-x", other), 409, "QueueAlreadyExists")
    expect(queues.put(f"/{queue}"), 204)


def test_deletion_takes_everything_and_creation_goes_on_at_once(queues: Client, queue: str) -> None:
    """Q-QUE-02, Q-ADR-03, Q-POP-03."""
    message = put(queues, queue)
    expect(queues.put(f"/{queue}?comp=metadata", {"x-ms-meta-a": "1"}), 204)
    expect(queues.put(f"/{queue}?comp=acl", (), POLICY.format(id="p", letters="r").encode()), 204)
    expect(queues.delete(f"/{queue}"), 204)
    for method, target, body in (
        ("GET", f"/{queue}?comp=metadata", b""),
        ("GET", f"/{queue}?comp=acl", b""),
        ("PUT", f"/{queue}?comp=metadata", b""),
        ("PUT", f"/{queue}?comp=acl", b""),
        ("DELETE", f"/{queue}", b""),
        ("GET", f"/{queue}/messages", b""),
        ("GET", f"/{queue}/messages?peekonly=true", b""),
        ("DELETE", f"/{queue}/messages", b""),
        ("POST", f"/{queue}/messages", b"<QueueMessage><MessageText/></QueueMessage>"),
        ("DELETE", f"/{queue}/messages/{message.id}?popreceipt={message.receipt}", b""),
        ("PUT", f"/{queue}/messages/{message.id}?popreceipt=x&visibilitytimeout=0", b""),
    ):
        expect(queues.send(method, target, (), body), 404, "QueueNotFound")
    expect(queues.put(f"/{queue}"), 201)
    assert count(queues, queue) == 0 and get(queues, queue) == []
    found = expect(queues.get(f"/{queue}?comp=metadata"), 200)
    assert metadata(found) == {}
    assert not list(expect(queues.get(f"/{queue}?comp=acl"), 200).xml)
    expect(delete(queues, queue, message), 404, "MessageNotFound")


def test_metadata_is_replaced_as_a_whole(queues: Client, queue: str) -> None:
    """Q-QUE-04, Q-QUE-06."""
    put(queues, queue)
    expect(queues.put(f"/{queue}?comp=metadata", {"x-ms-meta-One": "1", "x-ms-meta-two": "2"}), 204)
    for method in ("GET", "HEAD"):
        found = expect(queues.send(method, f"/{queue}?comp=metadata"), 200)
        assert metadata(found) == {"One": "1", "two": "2"}
        assert found["x-ms-approximate-messages-count"] == "1"
        assert found.body == b""
    expect(queues.put(f"/{queue}?comp=metadata", {"x-ms-meta-three": "3"}), 204)
    assert metadata(queues.get(f"/{queue}?comp=metadata")) == {"three": "3"}
    expect(queues.put(f"/{queue}?comp=metadata"), 204)
    assert metadata(queues.get(f"/{queue}?comp=metadata")) == {}
    bad = {"x-ms-meta-": "x"}
    expect(queues.put(f"/{queue}?comp=metadata", bad), 400, "EmptyMetadataKey")
    expect(queues.put(f"/{queue}-n", {"x-ms-meta-1a": "x"}), 400, "InvalidMetadata")
    whole = {"x-ms-meta-a": "x" * 8191}
    expect(queues.put(f"/{queue}?comp=metadata", whole), 204)
    over = {"x-ms-meta-a": "x" * 8192}
    expect(queues.put(f"/{queue}?comp=metadata", over), 400, "MetadataTooLarge")


def test_conditions_have_no_effect(queues: Client, queue: str) -> None:
    """Q-ADR-04."""
    never = {"If-Match": '"0x1"', "If-Unmodified-Since": "Fri, 01 Jan 2010 00:00:00 GMT"}
    expect(queues.put(f"/{queue}?comp=metadata", {**never, "x-ms-meta-a": "1"}), 204)
    expect(queues.get(f"/{queue}?comp=metadata", {"If-None-Match": "*"}), 200)
    expect(queues.send("POST", f"/{queue}/messages", never, b"<QueueMessage><MessageText>x"
                       b"</MessageText></QueueMessage>"), 201)  # fmt: skip
    expect(queues.delete(f"/{queue}", never), 204)


def test_policies_come_back_as_they_were_set(queues: Client, queue: str) -> None:
    """Q-QUE-07."""
    sent = POLICY.format(id="one", letters="raup")
    expect(queues.put(f"/{queue}?comp=acl", (), sent.encode()), 204)
    found = expect(queues.get(f"/{queue}?comp=acl"), 200)
    assert texts(found.xml, "SignedIdentifier/Id") == ["one"]
    assert texts(found.xml, "SignedIdentifier/AccessPolicy/Permission") == ["raup"]
    assert found["Content-Type"] == "application/xml"
    assert expect(queues.head(f"/{queue}?comp=acl"), 200).body == b""
    many = "".join(f"<SignedIdentifier><Id>{n}</Id></SignedIdentifier>" for n in range(6))
    body = f"<SignedIdentifiers>{many}</SignedIdentifiers>".encode()
    expect(queues.put(f"/{queue}?comp=acl", (), body), 400, "InvalidXmlDocument")
    for letters in ("rwdl", "zz"):
        body = POLICY.format(id="p", letters=letters).encode()
        refused = queues.put(f"/{queue}?comp=acl", (), body)
        assert expect(refused, 400, "InvalidXmlDocument").error["LineNumber"] == "0"
    expect(queues.put(f"/{queue}?comp=acl"), 204)
    assert not list(expect(queues.get(f"/{queue}?comp=acl"), 200).xml)


def queue_sas(
    client: Client, queue: str, sp: str = "", si: str = "", sv: str = "2021-12-02"
) -> str:
    """A token for a queue, by its letters or by a stored policy."""
    se = "" if si else "2099-01-01T00:00:00Z"
    resource = f"/queue/{client.account}/{queue}"
    text = "\n".join([sp, "", se, resource, si, "", "", sv])
    signature = mac(client.credential.key, text).replace("+", "%2B").replace("/", "%2F")
    fields = {"sv": sv, "sp": sp, "se": se, "si": si, "sig": signature.replace("=", "%3D")}
    return "&".join(f"{name}={value}" for name, value in fields.items() if value)


def test_a_queues_sas_permits_what_its_letters_say(queues: Client, queue: str) -> None:
    """Q-QUE-09."""
    message = put(queues, queue)
    body = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
    one = f"/{queue}/messages/{message.id}?popreceipt={message.receipt}"
    table: tuple[tuple[str, str, bytes, str, int], ...] = (
        ("GET", f"/{queue}?comp=metadata", b"", "r", 200),
        ("GET", f"/{queue}/messages?peekonly=true", b"", "r", 200),
        ("POST", f"/{queue}/messages", body, "a", 201),
        ("PUT", one + "&visibilitytimeout=9", b"", "u", 204),
        ("GET", f"/{queue}/messages", b"", "p", 200),
        ("DELETE", one, b"", "p", 404),
        ("DELETE", f"/{queue}/messages", b"", "", 0),
        ("PUT", f"/{queue}?comp=metadata", b"", "", 0),
        ("PUT", f"/{queue}?comp=acl", b"", "", 0),
        ("GET", f"/{queue}?comp=acl", b"", "", 0),
        ("PUT", f"/{queue}", b"", "", 0),
        ("DELETE", f"/{queue}", b"", "", 0),
    )
    anonymous = queues.anonymous
    for method, target, sent, letter, status in table:
        joined = target + ("&" if "?" in target else "?")
        if letter:
            token = queue_sas(queues, queue, letter)
            assert anonymous.send(method, joined + token, (), sent).status == status, target
        rest = "".join(one for one in "raup" if one != letter)
        refused = anonymous.send(method, joined + queue_sas(queues, queue, rest), (), sent)
        code = "AuthorizationPermissionMismatch" if letter else "AuthorizationFailure"
        expect(refused, 403, code)
    other = queue_sas(queues, f"{queue}-other", "raup")
    expect(anonymous.get(f"/{queue}/messages?{other}"), 403, "AuthenticationFailed")
    anonymous.close()


def test_a_policy_counts_from_the_moment_it_is_set(queues: Client, queue: str) -> None:
    """Q-QUE-08."""
    anonymous = queues.anonymous
    target = f"/{queue}/messages?peekonly=true&{queue_sas(queues, queue, si='one')}"
    expect(anonymous.get(target), 403, "AuthenticationFailed")
    policy = POLICY.format(id="one", letters="r").encode()
    expect(queues.put(f"/{queue}?comp=acl", (), policy), 204)
    expect(anonymous.get(target), 200)
    expect(queues.put(f"/{queue}?comp=acl"), 204)
    expect(anonymous.get(target), 403, "AuthenticationFailed")
    anonymous.close()


def test_an_account_sas_needs_service_type_and_letter(queues: Client, queue: str) -> None:
    """Q-SVC-05."""
    anonymous = queues.anonymous

    def attempt(method: str, target: str, ss: str, srt: str, sp: str) -> tuple[int, str | None]:
        token = account_sas(queues.credential, ss=ss, srt=srt, sp=sp)
        answer = anonymous.send(method, target + ("&" if "?" in target else "?") + token)
        return answer.status, answer.code

    messages = f"/{queue}/messages"
    for method, target, srt, sp, status in (
        ("GET", "/?comp=list", "s", "l", 200),
        ("GET", "/?restype=service&comp=properties", "s", "r", 200),
        ("PUT", f"/{queue}", "c", "c", 204),
        ("PUT", f"/{queue}", "c", "w", 204),
        ("GET", f"/{queue}?comp=metadata", "c", "r", 200),
        ("PUT", f"/{queue}?comp=metadata", "c", "w", 204),
        ("GET", messages, "o", "p", 200),
        ("GET", f"{messages}?peekonly=true", "o", "r", 200),
        ("DELETE", messages, "o", "d", 204),
        ("DELETE", f"{messages}/x?popreceipt=x", "o", "p", 400),
        ("PUT", f"{messages}/x?popreceipt=x&visibilitytimeout=0", "o", "u", 400),
    ):
        assert attempt(method, target, "q", srt, sp)[0] == status, (method, target)
        assert attempt(method, target, "b", srt, sp) == (403, "AuthorizationServiceMismatch")
        others = "".join(one for one in "sco" if one != srt)
        mismatch = (403, "AuthorizationResourceTypeMismatch")
        assert attempt(method, target, "q", others, sp) == mismatch
        wrong = "x" if sp != "x" else "r"
        assert attempt(method, target, "q", srt, wrong)[1] == "AuthorizationPermissionMismatch"
    expect(anonymous.get(f"/{queue}?comp=acl&{account_sas(queues.credential, ss='q')}"), 403,
           "AuthorizationFailure")  # fmt: skip
    anonymous.close()


def test_lists_have_pages_prefixes_and_metadata(queue_account: Client) -> None:
    """Q-LST-01, Q-LST-02, Q-LST-03, Q-LST-04."""
    names = sorted([f"a-{number}" for number in range(5)] + ["b-1", "b-2"])
    for name in names:
        expect(queue_account.put(f"/{name}", {"x-ms-meta-name": name}), 201)
    root = expect(queue_account.get("/?comp=list"), 200).xml
    assert root.tag == "EnumerationResults"
    assert (root.get("ServiceEndpoint") or "").endswith(f"/{queue_account.account}/")
    assert [child.tag for child in root] == ["Queues", "NextMarker"]
    assert texts(root, "Queues/Queue/Name") == names
    assert root.find("Queues/Queue/Metadata") is None
    found, marker = [], ""
    for _ in range(10):
        query = f"/?comp=list&maxresults=3&include=metadata&marker={marker}"
        root = expect(queue_account.get(query), 200).xml
        assert len(root.findall("Queues/Queue")) <= 3
        found += texts(root, "Queues/Queue/Metadata/name")
        marker = root.findtext("NextMarker") or ""
        if not marker:
            break
    assert found == names
    root = expect(queue_account.get("/?comp=list&prefix=b-"), 200).xml
    assert texts(root, "Queues/Queue/Name") == ["b-1", "b-2"]
    assert root.findtext("Prefix") == "b-"
    for query, code, name in (
        ("maxresults=0", "OutOfRangeQueryParameterValue", "maxresults"),
        ("include=all", "InvalidQueryParameterValue", "include"),
        ("marker=nonsense", "InvalidMarker", "marker"),
    ):
        expect_names(queue_account.get(f"/?comp=list&{query}"), 400, code, name)
    expect(queue_account.get("/?comp=list&maxresults=6000"), 200)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("-abc", "InvalidResourceName"),
        ("abc-", "InvalidResourceName"),
        ("a--b", "InvalidResourceName"),
        ("$root", "InvalidResourceName"),
        ("a.b.c", "InvalidResourceName"),
    ],
)
def test_names_that_no_queue_has(queues: Client, name: str, code: str) -> None:
    """Q-ADR-02."""
    expect(queues.put(f"/{name}"), 400, code)
    expect(queues.get(f"/{name}/messages"), 400, code)


def test_names_at_the_edge(queues: Client) -> None:
    """Q-ADR-02."""
    for name in ("abc", "0-1-2", "q" * 63):
        assert queues.put(f"/{name}").status in (201, 204)


def test_the_urls_of_queues(server: Running, queues: Client, queue: str) -> None:
    """Q-ADR-01, Q-ADR-05, Q-ADR-06."""
    put(queues, queue, "one")
    hosted = queues.another("")
    host = {"Host": f"{queues.account}.queue.localhost:{server.queue_port}"}
    # The canonical path names the account though the URL does not.
    expect(hosted.get(f"/{queue}/messages?peekonly=true", host), 200)
    hosted.close()
    expect(queues.get(f"/{queue}/messages/?peekonly=true"), 200)
    for path in (f"/{queue}/other", f"/{queue}/messages/a/b", f"/{queue}/Messages"):
        expect(queues.get(path), 400, "InvalidUri")
    expect_names(queues.get(f"/{queue}?comp=nonsense"), 400, "InvalidQueryParameterValue", "comp")
    allowed = expect(queues.send("PATCH", f"/{queue}/messages"), 405, "UnsupportedHttpVerb")
    assert set(allowed["Allow"].split(", ")) == {"GET", "POST", "DELETE"}
    key = "/?restype=service&comp=userdelegationkey"
    refused = expect(queues.send("POST", key, (), b"<KeyInfo/>"), 403, "AuthenticationFailed")
    assert refused.error["AuthenticationErrorDetail"].startswith(
        "Only authentication scheme Bearer"
    )


def test_the_secondary_endpoint_only_reads(queues: Client, queue: str) -> None:
    """Q-ADR-07, Q-SVC-02."""
    put(queues, queue, "one")
    other = queues.another(f"/{queues.account}-secondary")
    expect(other.get(f"/{queue}/messages?peekonly=true"), 200)
    for method, target in (
        ("GET", f"/{queue}/messages"),
        ("DELETE", f"/{queue}/messages"),
        ("PUT", f"/{queue}-new"),
    ):
        expect(other.send(method, target), 403, "InsufficientAccountPermissions")
    stats = "/?restype=service&comp=stats"
    found = expect(other.get(stats), 200).xml
    assert found.findtext("GeoReplication/Status") == "live"
    assert (found.findtext("GeoReplication/LastSyncTime") or "").endswith(" GMT")
    expect(queues.get(stats), 400, "InvalidQueryParameterValue")
    other.close()
    assert len(get(queues, queue)) == 1


def test_without_credentials_nothing_is_told(queues: Client, queue: str) -> None:
    """Q-SVC-04."""
    anonymous = queues.anonymous
    for version, status, code in (
        ("2019-12-12", 401, "NoAuthenticationInformation"),
        ("2019-07-07", 403, "AuthenticationFailed"),
    ):
        for target in (f"/{queue}/messages", "/absent/messages", "/?comp=list"):
            expect(anonymous.get(target, {"x-ms-version": version}), status, code)
    anonymous.close()
