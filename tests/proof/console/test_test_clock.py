"""The clock and the faults of a test server, in the view Access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server
from tests.conformance.client import PUT_BLOB, Client
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, Console
from tests.interop.console.conftest import KEY

_PHONE = {"width": 360, "height": 740}
CONTAINER = "/clock?restype=container"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Client]]:
    """The console of a server with a test clock, and a client of its Blob service."""
    port = free_port()
    with Server.start(flags=("--console-port", str(port))) as running:
        client = Client(running.port, KEY)
        client.put(CONTAINER)
        yield f"http://{HOST}:{port}", client
        client.close()


@pytest.fixture
def window(browser: Browser, server: tuple[str, Client]) -> Iterator[Console]:
    """The view Access, signed in; at the end, what must hold of every window is asserted."""
    context = browser.new_context()
    context.set_default_timeout(EVENT_TIMEOUT_MS)
    console = Console(context.new_page(), server[0])
    console.sign_in("/access")
    yield console
    console.must_be_clean()
    context.close()


def test_moving_the_time_ends_a_lease(window: Console, server: tuple[str, Client]) -> None:
    client = server[1]
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60"}
    assert client.put("/clock?restype=container&comp=lease", lease).status == 201
    assert client.put("/clock?restype=container&comp=lease", lease).status == 409
    window.page.get_by_label("Advance by (s)").fill("61")
    window.button("Move the time").click()
    expect(window.page.get_by_text("The time was moved.")).to_be_visible()
    assert client.put("/clock?restype=container&comp=lease", lease).status == 201


def test_a_time_that_cannot_be_moved_to_is_refused_in_the_servers_words(window: Console) -> None:
    window.page.get_by_label("Advance by (s)").fill("-5")
    window.button("Move the time").click()
    alert = window.page.get_by_role("alert").filter(has_text="advance_s must lie between 0 and")
    expect(alert).to_be_visible()


def test_faults_are_ordered_counted_and_cleared(
    window: Console, server: tuple[str, Client]
) -> None:
    client = server[1]
    page = window.page
    expect(page.get_by_text("No fault is ordered.")).to_be_visible()
    page.get_by_label("Operation").fill("Put Blob")
    page.get_by_label("Resource").fill("*/clock/*")
    page.get_by_label("Fault", exact=True).select_option("busy")
    page.get_by_label("Times").fill("1")
    window.button("Order fault").click()
    rule = page.get_by_role("table", name="Faults").get_by_role("row").filter(has_text="busy")
    expect(rule).to_contain_text("Put Blob")
    assert client.put("/clock/b", PUT_BLOB, b"").status == 503
    assert client.put("/clock/b", PUT_BLOB, b"").status == 201
    expect(rule.get_by_role("cell").nth(5)).to_have_text("2")
    expect(rule.get_by_role("cell").nth(6)).to_have_text("1")
    page.get_by_label("Operation").fill("Get Blob")
    page.get_by_label("Fault", exact=True).select_option("error")
    page.get_by_label("Times").fill("")
    window.button("Order fault").click()
    expect(page.get_by_role("table", name="Faults").get_by_role("row")).to_have_count(3)
    assert [client.get("/clock/b").status for _ in range(2)] == [500, 500]
    window.button("Clear faults").click()
    expect(page.get_by_text("No fault is ordered.")).to_be_visible()
    assert client.get("/clock/b").status == 200


def test_it_suits_everyone(browser: Browser, server: tuple[str, Client]) -> None:
    options: dict[str, Any] = {"viewport": _PHONE, "color_scheme": "dark"}
    context = browser.new_context(**options)
    context.set_default_timeout(EVENT_TIMEOUT_MS)
    console = Console(context.new_page(), server[0])
    console.sign_in("/access")
    console.button("Order fault").click()
    console.page.get_by_role("table", name="Faults").wait_for()
    assert console.serious_findings() == []
    main = "document.querySelector('main')"
    assert console.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    console.button("Clear faults").press("Enter")
    expect(console.page.get_by_text("No fault is ordered.")).to_be_visible()
    console.must_be_clean()
    context.close()


def test_another_server_has_none(console: Console) -> None:
    console.sign_in("/access")
    console.page.get_by_role("heading", name="Accounts", exact=True).wait_for()
    expect(console.page.get_by_role("heading", name="Test clock")).to_have_count(0)
