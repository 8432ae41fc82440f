"""Takes the pictures of the console that docs show, in light and dark: `make screenshots`.

Lives here: the server, the browser, the files. Must not live here: which pictures there are
(views.py). It needs Chromium, and the built page. Names on the pictures are the same each time;
times and latencies are not.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from strongroom.servers.console.pages import BuiltPage
from strongroom.testing.ports import HOST, free_port, is_free
from strongroom.testing.server import Server
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, Console, chromium
from tests.interop.console.pictures import contents
from tests.interop.console.pictures.participants import participants
from tests.interop.console.pictures.views import PICTURES, Picture

FOLDER: Final = Path(__file__).resolve().parents[4] / "docs" / "pictures" / "console"
_SIZE: Final = {"width": 1280, "height": 800}
_BYTES_MAX: Final = 120_000
_QUALITY: Final = 88
# The ports that people see, where they are free.
_USUAL_PORTS: Final = (10000, 10001, 10002, 10003, 10010)


@contextmanager
def demo() -> Iterator[tuple[Server, str]]:
    """Provide a server with something to look at, and the address of its console."""
    ports = _USUAL_PORTS if all(map(is_free, _USUAL_PORTS)) else [free_port() for _ in range(5)]
    blob, queue, table, file, console = ports
    flags = ("--console-port", str(console))
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder, "data"), False, (blob, queue, table, file), flags, {}) as server,
    ):
        contents.fill(server)
        with participants(f"{server.url}/{contents.ACCOUNT}/{contents.LOCKS}"):
            yield server, f"http://{HOST}:{console}"


def take(browser: Browser, server: Server, url: str, picture: Picture, scheme: str) -> Path | None:
    """Take one picture. Return its file; None if there is no such view."""
    context = browser.new_context(
        viewport=_SIZE,  # type: ignore[arg-type]
        device_scale_factor=1,
        color_scheme=scheme,  # type: ignore[arg-type]
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(EVENT_TIMEOUT_MS)
    try:
        console = Console(context.new_page(), url)
        console.sign_in()
        if console.link(picture.view).count() == 0:
            return None
        picture.show(console, server)
        console.page.mouse.move(0, 0)
        console.page.wait_for_timeout(300)  # the last frame of what appeared
        made = context.new_cdp_session(console.page).send(
            "Page.captureScreenshot", {"format": "webp", "quality": _QUALITY}
        )
    finally:
        context.close()
    path = FOLDER / f"{picture.name}-{scheme}.webp"
    path.write_bytes(base64.b64decode(made["data"]))
    return path


def main(names: list[str]) -> int:
    """Take the pictures of these names, or all. Return the exit code."""
    unknown = sorted(set(names) - {one.name for one in PICTURES})
    if unknown:
        there = ", ".join(one.name for one in PICTURES)
        print(f"There is no picture {unknown[0]!r}. There are {there}.", file=sys.stderr)
        return 2
    if not BuiltPage().is_built:
        print("The console's page is not built: run 'make console'.", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    too_large = False
    with demo() as (server, url), chromium() as browser:
        for picture in PICTURES:
            for scheme in ("light", "dark") if not names or picture.name in names else ():
                path = take(browser, server, url, picture, scheme)
                if path is None:
                    print(f"{picture.name}: there is no view {picture.view}")
                    continue
                size = path.stat().st_size
                too_large |= size > _BYTES_MAX
                print(f"{path.relative_to(FOLDER.parents[2])}  {size / 1000:.0f} kB")
    if too_large:
        print(f"A picture has more than {_BYTES_MAX / 1000:.0f} kB.", file=sys.stderr)
    return int(too_large)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
