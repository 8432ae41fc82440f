"""A kept request as a command and as code, to be sent again.

Lives here: the command of curl, plain requests in three languages, the quoting of every value. Must
not live here: the calls of client libraries (sdk_calls.py). Nothing secret is in it: signatures,
keys, lease ids and the like are placeholders. Bodies are not kept, so curl has no `--data`. URLs
name the service's own port, never the console's.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Final

from strongroom.errors.core import StorageError
from strongroom.servers.console.api.documents import Replay
from strongroom.servers.console.requests.kept import ShortRecord
from strongroom.servers.console.requests.masking import HIDDEN, Masking
from strongroom.servers.console.requests.received import url_target
from strongroom.servers.console.requests.scope import SERVICES, Endpoints
from strongroom.servers.console.requests.sdk_calls import CALLS, CLIENTS
from strongroom.wire.core.http import Request

KEY: Final = "<account key>"
SIGNATURE: Final = "<signature>"

# The client makes these anew.
_LEFT_OUT: Final = frozenset(
    (
        *("host", "content-length", "connection", "expect", "transfer-encoding", "upgrade"),
        *("accept-encoding", "keep-alive", "te", "trailer", "origin", "referer", "cookie"),
    )
)
_OF_BROWSERS: Final = "sec-"
_HOST: Final = re.compile(
    r"[0-9A-Za-z.-]{1,253}(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](?::[0-9]{1,5})?"
)
_SDK_FIELDS: Final = frozenset(("snapshot", "versionid", "sharesnapshot"))


def replay(request: Request, record: ShortRecord, masking: Masking, endpoints: Endpoints) -> Replay:
    """Return how to send a request again.

    Arguments:
        endpoints: where requests that came through the console go instead.
    """
    plain = _Plain(request, record, masking, endpoints)
    texts = _of_libraries(request, record, masking, plain.account_url)
    python, javascript, dotnet = texts or plain.in_languages()
    return Replay(curl=plain.curl(), python=python, javascript=javascript, dotnet=dotnet)


class _Plain:
    """The URL and the headers of a request, without secrets."""

    def __init__(
        self, request: Request, record: ShortRecord, masking: Masking, endpoints: Endpoints
    ) -> None:
        self.method = request.method
        origin, path = _origin(request, record, endpoints)
        query = "" if request.query is None else f"?{request.query}"
        shown = masking.text(path + query).replace(HIDDEN, SIGNATURE)
        self.url = origin + (shown if shown.startswith("/") else f"/{shown}")
        account = f"/{record.account}"
        in_path = path == account or path.startswith(f"{account}/")
        self.account_url = origin + account if in_path else origin
        self.fields = [
            (name, _without_secret(name, masking.header(name, value)))
            for name, value in request.headers.fields
            if name.lower() not in _LEFT_OUT and not name.lower().startswith(_OF_BROWSERS)
        ]

    def curl(self) -> str:
        """Return the command of curl, for a POSIX shell."""
        words = ["curl", "--globoff", "--path-as-is", "--include"]
        words += ["--head"] if self.method == "HEAD" else ["--request", shlex.quote(self.method)]
        lines = [" ".join(words)]
        for name, value in self.fields:
            # curl takes a header without a value for one that is to be left out.
            field = f"{name}: {value}" if value else f"{name};"
            lines.append(f"  --header {shlex.quote(field)}")
        lines.append(f"  --url {shlex.quote(self.url)}")
        return " \\\n".join(lines)

    def in_languages(self) -> tuple[str, str, str]:
        """Return the request in Python, JavaScript and C#."""
        return self._python(), self._javascript(), self._dotnet()

    def _python(self) -> str:
        fields = "".join(f"    {_python(n)}: {_python(v)},\n" for n, v in self.fields)
        return (
            "import urllib.request\n\n"
            f"headers = {{\n{fields}}}\n"
            f"request = urllib.request.Request({_python(self.url)}, headers=headers, "
            f"method={_python(self.method)})\n"
            "with urllib.request.urlopen(request) as answer:\n"
            "    print(answer.status, answer.read())\n"
        )

    def _javascript(self) -> str:
        fields = "".join(f"  [{_javascript(n)}, {_javascript(v)}],\n" for n, v in self.fields)
        return (
            f"const headers = [\n{fields}];\n"
            f"const answer = await fetch({_javascript(self.url)}, "
            f"{{ method: {_javascript(self.method)}, headers }});\n"
            "console.log(answer.status, await answer.text());\n"
        )

    def _dotnet(self) -> str:
        fields = "".join(
            f"request.Headers.TryAddWithoutValidation({_dotnet(n)}, {_dotnet(v)});\n"
            for n, v in self.fields
        )
        return (
            "using var client = new HttpClient();\n"
            f"var request = new HttpRequestMessage(new HttpMethod({_dotnet(self.method)}), "
            f"{_dotnet(self.url)});\n{fields}"
            "var answer = await client.SendAsync(request);\n"
            "Console.WriteLine(await answer.Content.ReadAsStringAsync());\n"
        )


def _origin(request: Request, record: ShortRecord, endpoints: Endpoints) -> tuple[str, str]:
    """Return scheme and authority of the service's own port, and the path there."""
    service = SERVICES.get(record.service)
    own = None if service is None else endpoints.get(service)
    if record.through_console and own is not None:
        return own.rstrip("/"), request.path.removeprefix(request.mount)
    host = request.host if _HOST.fullmatch(request.host) else "127.0.0.1"
    return (
        f"{'https' if request.tls else 'http'}://{host}{request.mount}",
        request.path.removeprefix(request.mount),
    )


def _without_secret(name: str, shown: str) -> str:
    """Return the masked value of a header with a placeholder that says what belongs there."""
    if HIDDEN not in shown:
        return shown
    what = SIGNATURE if name.lower() == "authorization" else f"<{name.lower()}>"
    if shown.startswith("Bearer "):
        what = "<token>"
    before, _, after = shown.partition(HIDDEN)
    return f"{before}{what}{after}" if " " in before or "=" in before else what


def _of_libraries(
    request: Request, record: ShortRecord, masking: Masking, url: str
) -> tuple[str, str, str] | None:
    """Return the calls of the client libraries; None if there is no call for this request."""
    service, calls = SERVICES.get(record.service), CALLS.get(record.operation)
    query = (request.query or "").lower()
    if service is None or calls is None or any(f"{name}=" in query for name in _SDK_FIELDS):
        return None
    try:
        target = url_target(request, record)
    except StorageError:
        return None
    if masking.text(f"{target.container}\n{target.blob}") != f"{target.container}\n{target.blob}":
        return None
    texts = {
        "url": url,
        "account": record.account,
        "key": KEY,
        "container": target.container or "",
        "name": target.blob or "",
    }
    client, made = CLIENTS[service], list[str]()
    for quoted, first, call in zip(QUOTES, client, calls, strict=True):
        values = {name: quoted(value) for name, value in texts.items()}
        made.append(f"{first}{call}\n".format_map(values))
    python, javascript, dotnet = made
    return python, javascript, dotnet


def _python(text: str) -> str:
    return ascii(text)


def _javascript(text: str) -> str:
    return json.dumps(text)


def _dotnet(text: str) -> str:
    """Return a text as a literal of C#, whose escapes include those of JSON."""
    return json.dumps(text)


QUOTES: Final[tuple[Callable[[str], str], ...]] = (_python, _javascript, _dotnet)
"""How a text is quoted in Python, JavaScript and C#."""
