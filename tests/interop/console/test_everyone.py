"""For everyone: keyboard, narrow screens, dark and light, screen readers, on every view."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.conformance.client import PUT_BLOB
from tests.interop.console.browsers import Console, schemes
from tests.interop.console.conftest import NewConsole, Served
from tests.interop.console.keys import press_until

_PHONE = {"width": 360, "height": 740}


@pytest.fixture(autouse=True)
def _some_requests(served: Served) -> None:
    served.client.put("/everyone?restype=container")
    served.client.put("/everyone/b", PUT_BLOB, b"text")
    served.client.get("/everyone/missing")


def test_everything_is_done_with_the_keyboard(console: Console) -> None:
    console.open()
    console.button("Use the development account").wait_for()
    press_until(console, "Use the development account")
    console.page.keyboard.press("Enter")
    expect(console.heading("Overview")).to_be_focused()
    press_until(console, "Requests", "Shift+Tab")
    console.page.keyboard.press("Enter")
    expect(console.heading("Requests")).to_be_focused()
    table = console.page.get_by_role("table", name="Requests", exact=True)
    table.get_by_role("link", name="Get Blob").first.wait_for()
    press_until(console, "Pause")
    console.page.keyboard.press("Enter")
    expect(console.button("Resume")).to_be_focused()
    links = table.get_by_role("row").get_by_role("link")
    press_until(console, "Get Blob")
    expect(links.nth(0)).to_be_focused()
    console.page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    console.page.keyboard.press("ArrowUp")
    expect(links.nth(0)).to_be_focused()
    console.page.keyboard.press("Enter")
    region = console.page.get_by_role("region", name="Request", exact=True)
    expect(region).to_be_focused()
    press_until(console, "Close")
    console.page.keyboard.press("Enter")
    expect(region).to_be_hidden()


def test_the_first_key_can_skip_the_navigation(console: Console) -> None:
    console.sign_in()  # the heading has the focus then, and gets it no more
    console.page.evaluate("document.activeElement.blur()")
    press_until(console, "Skip to the view")
    console.page.keyboard.press("Enter")
    expect(console.page.get_by_role("main")).to_be_focused()


@pytest.mark.parametrize("path", ["/overview", "/requests"])
def test_nothing_is_wider_than_a_phone(new_console: NewConsole, path: str) -> None:
    console = new_console(viewport=_PHONE)
    console.open(path)
    console.button("Use the development account").wait_for()
    assert console.page.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
    console.button("Use the development account").click()
    console.page.get_by_role("table").first.wait_for()
    assert console.page.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
    main = "document.querySelector('main')"
    assert console.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    for name in ("Overview", "Requests"):
        expect(console.link(name)).to_be_visible()
    expect(console.button("Sign out")).to_be_visible()


def test_the_theme_is_the_systems_until_it_is_chosen(new_console: NewConsole) -> None:
    console = new_console(color_scheme="dark")
    console.sign_in()
    background = "getComputedStyle(document.body).backgroundColor"
    dark = console.page.evaluate(background)
    console.button("Theme").click()
    light = console.page.evaluate(background)
    assert dark != light
    console.page.reload()
    console.button("Theme").wait_for()
    assert console.page.evaluate(background) == light


@pytest.mark.parametrize("scheme", schemes("light"))
def test_axe_finds_nothing_serious(new_console: NewConsole, scheme: str) -> None:
    console = new_console(color_scheme=scheme)
    console.open()
    console.button("Use the development account").wait_for()
    assert console.serious_findings() == []
    console.button("Use the development account").click()
    console.page.get_by_role("table", name="Services").wait_for()
    assert console.serious_findings() == []
    console.link("Requests").click()
    table = console.page.get_by_role("table", name="Requests", exact=True)
    table.get_by_role("row").filter(has_text="/everyone/missing").first.click()
    console.page.get_by_role("heading", name="Replay").wait_for()
    assert console.serious_findings() == []


def test_axe_would_find_something(console: Console) -> None:
    console.open()
    console.button("Use the development account").wait_for()
    console.page.evaluate("document.querySelector('label').remove()")
    assert any(one.startswith("label:") for one in console.serious_findings())


def test_times_are_local_and_utc_is_in_their_title(new_console: NewConsole) -> None:
    console = new_console(timezone_id="Asia/Tokyo")
    console.sign_in("/requests")
    time = console.page.locator("td time").first
    shown, title = time.text_content(), time.get_attribute("title")
    assert shown and title and title.endswith("UTC")
    hour = (int(title.partition(" ")[2][:2]) + 9) % 24
    assert shown.startswith(f"{hour:02}:")
