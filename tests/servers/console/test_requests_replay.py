"""Replays send the same request again, with every value quoted and without secrets."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.request import Service
from strongroom.servers.console.api.documents import Replay
from strongroom.servers.console.requests.heads import SentHead
from strongroom.servers.console.requests.kept import ShortRecord
from strongroom.servers.console.requests.masking import Masking
from strongroom.servers.console.requests.received import request_of
from strongroom.servers.console.requests.replay import QUOTES, replay
from strongroom.servers.console.requests.sdk_calls import CALLS
from strongroom.servers.service_listeners import ENDPOINTS

OWN = {service: f"http://127.0.0.1:{10000 + at}" for at, service in enumerate(Service)}
HOSTILE = [
    "a'b", 'a"b', "a`id`b", "$(id)", "${HOME}", "a\\b", "a;b|c&d", "{a,b}[1-3]", "!history", "-x",
    "@file", "</script><img src=x>", "\xe4\xff", "%24(id)", "a b", "'''", '"""', "\\u0022",
]  # fmt: skip


def replayed(
    target: str,
    *fields: tuple[str, str],
    method: str = "GET",
    operation: str = "Get Blob",
    through_console: bool = False,
    service: str = "b",
) -> Replay:
    if all(name != "Host" for name, _ in fields):
        fields = (("Host", "127.0.0.1:10000"), *fields)
    head = SentHead(method, target, fields=fields)
    record = ShortRecord(
        0, 0.1, 200, method, operation, service, "acct", "c", target.partition("?")[0], "key1", "",
        through_console,
    )  # fmt: skip
    request = request_of(head, record, tls=False)
    return replay(request, record, Masking(head), OWN)


def words(curl: str) -> list[str]:
    """Return the arguments as a shell makes them."""
    command = curl.replace("curl", "printf '%s\\0'", 1)
    shell = subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=30)
    assert shell.stderr == b""
    return shell.stdout.decode("utf-8").split("\0")[:-1]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_shell_makes_of_the_command_what_was_sent(value: str) -> None:
    path = value.replace(" ", "%20")
    found = replayed(f"/acct/c/{path}?a={path}", ("User-Agent", value), ("x-ms-meta-a", value))
    given = words(found.curl)
    assert given[given.index("--url") + 1] == f"http://127.0.0.1:10000/acct/c/{path}?a={path}"
    headers = [given[at + 1] for at, word in enumerate(given) if word == "--header"]
    assert headers == [f"User-Agent: {value}", f"x-ms-meta-a: {value}"]
    assert given[:5] == ["--globoff", "--path-as-is", "--include", "--request", "GET"]


@given(st.text(max_size=80))
def test_each_language_reads_back_what_was_quoted(text: str) -> None:
    python, javascript, dotnet = (quoted(text) for quoted in QUOTES)
    assert ast.literal_eval(python) == text
    assert json.loads(javascript) == json.loads(dotnet) == text
    for one in (python, javascript, dotnet):
        assert one.isascii() and one.isprintable()


@pytest.mark.parametrize("value", HOSTILE)
def test_no_name_leaves_its_literal(value: str) -> None:
    found = replayed(f"/acct/c/{quote(value)}")
    assert found.python is not None and found.javascript is not None
    tree = ast.parse(found.python)
    literals = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
    # A backslash in a name is a slash, but the path is shown as it was sent.
    assert value in literals
    calls = [ast.unparse(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)]
    assert sorted(calls)[0] == "BlobServiceClient" and len(calls) == 4
    assert json.dumps(value) in found.javascript


@pytest.mark.parametrize("method", ["PUT", "HEAD", "DELETE"])
def test_another_request_is_replayed_as_it_was_sent(method: str) -> None:
    found = replayed("/acct/c/b?comp=tags", ("x-ms-tags", "a=b"), method=method, operation="Other")
    assert found.python is not None and found.javascript is not None and found.dotnet is not None
    ast.parse(found.python)
    for text in (found.python, found.javascript, found.dotnet):
        assert f"{method}" in text and "x-ms-tags" in text and "/acct/c/b?comp=tags" in text
    assert ("--head \\" in found.curl) is (method == "HEAD")


def test_no_secret_is_replayed_and_no_body() -> None:
    lease = "11111111-2222-3333-4444-555555555555"
    found = replayed(
        "/acct/c/b?sv=1&s%69g=SIGNATURE%3D&se=2",
        ("Authorization", "SharedKey acct:SECRETSECRET"),
        ("x-ms-lease-id", lease),
        ("x-ms-encryption-key", "KEYKEYKEYKEY"),
        ("x-ms-copy-source", "http://h/a/b?sig=OTHERSIGNATURE"),
        ("Cookie", "session=COOKIECOOKIE"),
        ("Content-Length", "7"),
        ("x-ms-empty", ""),
        method="PUT",
        operation="Other",
    )
    text = repr(found)
    for secret in ("SIGNATURE%3D", "SECRETSECRET", "2222-3333", "KEYKEYKEYKEY", "COOKIECOOKIE"):
        assert secret not in text
    assert "OTHERSIGNATURE" not in text
    given = words(found.curl)
    assert "Authorization: SharedKey acct:<signature>" in given
    assert "x-ms-lease-id: <x-ms-lease-id>" in given
    assert "x-ms-encryption-key: <x-ms-encryption-key>" in given
    assert "x-ms-empty;" in given
    assert "http://127.0.0.1:10000/acct/c/b?sv=1&s%69g=<signature>&se=2" in given
    assert not any(word.startswith(("--data", "Content-Length", "Cookie")) for word in given)


@pytest.mark.parametrize("host", ["evil.example/x?", "a b", "h:1@evil", "", "$(id)"])
def test_a_hostile_host_becomes_loopback(host: str) -> None:
    assert "http://127.0.0.1/acct/c/b'" in replayed("/acct/c/b", ("Host", host)).curl + "'"


def test_a_request_through_the_console_goes_to_the_services_own_port() -> None:
    found = replayed("/blob/acct/c/b", ("Host", "127.0.0.1:10010"), through_console=True)
    for text in (found.curl, found.python, found.javascript, found.dotnet):
        assert text is not None and "10010" not in text and "http://127.0.0.1:10000" in text
    assert "/blob/" not in found.curl
    one_port = replayed("/blob/acct/c/b", ("Host", "127.0.0.1:10009"))
    assert "http://127.0.0.1:10009/blob/acct/c/b" in one_port.curl


def test_each_call_is_for_an_operation_and_is_code() -> None:
    names = {one.name for endpoint in ENDPOINTS.values() for one in endpoint.routes.operations}
    assert set(CALLS) <= names
    letters = {
        one.name: endpoint.service.letter
        for endpoint in ENDPOINTS.values()
        for one in endpoint.routes.operations
    }
    for name in CALLS:
        found = replayed("/acct/c/b", operation=name, service=letters[name])
        assert found.python is not None and found.javascript is not None
        ast.parse(found.python)
        assert "azure" in found.python and "@azure/" in found.javascript
        assert not re.search(r"\{\w+\}", found.python + (found.dotnet or ""))


def test_quoting_for_the_shell_survives_a_line_end() -> None:
    command = replayed("/acct/c/b", ("X-A", "a\nb")).curl.replace("\\\n", "")
    assert shlex.split(command)[-3] == "X-A: a\nb"
