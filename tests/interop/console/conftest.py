"""One server for all tests of the console, and one browser for those of a file; each test has a
window of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.servers.console.pages import BuiltPage
from strongroom.testing.ports import free_port
from strongroom.testing.server import Server
from tests.conformance.client import Client, Credential
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, Console, chromium

KEY = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
NewConsole = Callable[..., Console]


@dataclass(frozen=True, slots=True)
class Served:
    """A server with a console, and a client of its Blob service beside the browser."""

    server: Server
    url: str
    client: Client


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if not BuiltPage().is_built:
        pytest.fail("The console's page is not built: run 'make console'.", pytrace=False)
    port = free_port()
    data: Path = tmp_path_factory.mktemp("console") / "data"
    flags = ("--console-port", str(port))
    with Server.start(data=data, test_clock=False, flags=flags) as server:
        client = Client(server.port, KEY)
        yield Served(server, f"http://127.0.0.1:{port}", client)
        client.close()


# Playwright keeps a running event loop in this thread, with which no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def new_console(browser: Browser, served: Served) -> Iterator[NewConsole]:
    """Return a maker of windows that share nothing; its arguments are Playwright's for a context.

    At the end, all that must hold of every window is asserted.
    """
    made: list[Console] = []

    def make(**options: object) -> Console:
        size = {"width": 1280, "height": 860}
        context = browser.new_context(**{"viewport": size, **options})  # type: ignore[arg-type]
        context.set_default_timeout(EVENT_TIMEOUT_MS)
        console = Console(context.new_page(), served.url)
        made.append(console)
        return console

    yield make
    for console in made:
        console.must_be_clean()
        console.page.context.close()


@pytest.fixture
def console(new_console: NewConsole) -> Console:
    """A window of the console, at the sign-in."""
    return new_console()
