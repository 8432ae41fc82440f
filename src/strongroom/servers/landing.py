"""The page for a person whose browser opens the address of a service.

Lives here: when it is shown, and its text. Must not live here: the server's own endpoints
(own_endpoints.py). Without it a browser would show the XML of InvalidUri, since a path without an
account names nothing.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from strongroom import __version__
from strongroom.servers.own_endpoints import PREFIX
from strongroom.wire.core.http import Request, Response

_HTML: Final = "text/html"
_PAGE: Final = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Strongroom</title></head><body>
<p>This is Strongroom {__version__}, a storage server that speaks the Azure Storage protocol.
Programs use it at <code>/ACCOUNT/...</code>, by an SDK and the connection string that
<code>strongroom serve</code> has printed.
See whether it is <a href="{PREFIX}health">ready to serve</a>.</p>
</body></html>
""".encode()


def is_for(request: Request) -> bool:
    """Return whether a request is a browser's for the root of an address that names no account."""
    headers = request.headers
    return (
        request.path == "/"
        and request.query is None
        and request.method in ("GET", "HEAD")
        and _HTML in (headers.get("accept") or "")
        and headers.get("authorization") is None
        and _names_no_account(request.host)
    )


async def answer() -> Response:
    headers = [
        ("Content-Type", f"{_HTML}; charset=utf-8"),
        ("Content-Security-Policy", "default-src 'none'"),
        ("Cache-Control", "no-store"),
    ]
    response = Response(200, headers, _PAGE, len(_PAGE))
    response.operation = "own endpoint"
    return response


def _names_no_account(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() == "localhost"
    return True
