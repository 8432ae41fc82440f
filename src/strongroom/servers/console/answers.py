"""The headers of the console's answers, which are set last of all.

Lives here: which headers an answer gets for each area of the port, and which it loses. Must not
live here: bodies, who may ask (origin.py, viewers.py). They replace stored headers and those that a
SAS chooses (`rsct`, `rscd`), and refusals and errors get them too. Source: "Content Security Policy
Level 3", "Fetch" (Cross-Origin-Resource-Policy, X-Content-Type-Options), HTML (COOP).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from strongroom.servers.console.origin import Area
from strongroom.wire.core.http import Request, Response

_CORS: Final = "access-control-"
_NONE: Final = "'none'"
_EVERYWHERE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
# What is opened as a page by itself: no script runs, and its origin is that of nobody.
_SANDBOXED: Final = {"Content-Security-Policy": "sandbox; default-src 'none'"}
_NOT_KEPT: Final = {"Cache-Control": "no-store"}
_OF_PAGE: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def page_policy(origin: str, files: Collection[str]) -> str:
    """Return the content security policy of the page.

    Arguments:
        origin: of the page, as browsers write it: of safe characters only.
        files: the paths of its files. Only these run, are styles or images: not `'self'`, since
            stored data has the same origin.
    """
    scripts, styles, images = (
        " ".join(f"{origin}{path}" for path in sorted(files) if path.endswith(ends))
        for ends in (".js", ".css", (".svg", ".png"))
    )
    return (
        f"default-src 'none'; script-src {scripts or _NONE}; style-src {styles or _NONE}; "
        f"img-src {images} blob:; "
        "connect-src 'self'; worker-src 'none'; frame-src 'none'; object-src 'none'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def finish(response: Response, request: Request | None, area: Area, policy: str = "") -> Response:
    """Set the headers of an answer, and return it. Nothing may change them afterwards.

    Arguments:
        request: None if none could be read.
        policy: of the page (`page_policy`); "" = the answer is none of its pages.
    """
    headers = {**_EVERYWHERE, **(_OF_PAGE if area is Area.PAGE else {}), **_SANDBOXED}
    if policy:
        headers["Content-Security-Policy"] = policy
    if area is not Area.DATA or request is None or request.method != "HEAD":
        # HEAD has nothing that a browser could keep, and tells the page what is stored.
        headers |= _NOT_KEPT
    if area is Area.DATA and _is_opened(request):
        headers["Content-Disposition"] = "attachment"
    _set(response, headers)
    return response


def _is_opened(request: Request | None) -> bool:
    """Whether a browser says that it would show the answer, rather than give it to a script. A
    request that could not be read may have said so."""
    if request is None:
        return True
    destination = request.headers.get("sec-fetch-dest")
    return destination is not None and destination.lower() != "empty"


def _set(response: Response, headers: Mapping[str, str]) -> None:
    replaced = {name.lower() for name in headers}
    kept = [
        (name, value)
        for name, value in response.headers
        if name.lower() not in replaced and not name.lower().startswith(_CORS)
    ]
    response.headers = [*kept, *headers.items()]
