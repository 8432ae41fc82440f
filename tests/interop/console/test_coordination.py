"""The coordination view as people use it: two browsers, and programs that wait and hold."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from strongroom.coordination import connect
from strongroom.testing.ports import HOST, free_port
from tests.interop.console.browsers import schemes
from tests.interop.console.keys import confirm_by_name

AXE = Path(__file__).parents[3] / "console/node_modules/axe-core/axe.min.js"
ACCOUNT = "devstoreaccount1"
TIMEOUT_MS = 30_000
HOSTILE = "<img src=x onerror=\"document.title='run'\">/.."


class Console:
    """`strongroom serve` with a console, and what waits and holds in its store."""

    def __init__(self, blob_port: int, console_port: int) -> None:
        self.url = f"http://{HOST}:{console_port}"
        self.store = f"http://{HOST}:{blob_port}/{ACCOUNT}/locks"

    def waiting(self, gate: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "strongroom", "gate", gate, "wait", "--timeout", "120"]
        return subprocess.Popen([*command, "--store", self.store], stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    ports = [free_port() for _ in range(5)]
    names = ("blob", "queue", "table", "file", "console")
    flags = [
        text
        for name, port in zip(names, ports, strict=True)
        for text in (f"--{name}-port", str(port))
    ]
    command = [sys.executable, "-m", "strongroom", "serve", "--in-memory", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if "health" in line:
                break
        yield Console(ports[0], ports[4])
        server.terminate()
        server.stdout.read()


@contextlib.contextmanager
def signed_in(browser: Browser, console: Console) -> Iterator[Page]:
    """A window of its own, in which somebody has signed in and sees the view."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{console.url}/coordination")
    page.get_by_role("button", name="Use the development account").click()
    expect(page.get_by_role("heading", name="Coordination", level=1)).to_be_visible()
    yield page
    assert page.title() == "Coordination - Strongroom"
    assert all(url.startswith(f"{console.url}/") for url in asked), asked
    context.close()


def test_an_empty_view_says_what_to_do_first(browser: Browser, console: Console) -> None:
    with signed_in(browser, console) as page:
        shown = page.get_by_text("strongroom gate go-live wait")
        expect(shown).to_be_visible()
        expect(shown).to_contain_text(console.store)


def test_three_wait_at_a_gate_and_go_on_when_it_is_opened(
    browser: Browser, console: Console
) -> None:
    programs = [console.waiting("go-live") for _ in range(3)]
    with signed_in(browser, console) as page, signed_in(browser, console) as other:
        for window in (page, other):
            gate = window.get_by_role("listitem").filter(has_text="go-live")
            for program in programs:
                expect(gate.get_by_text(f":{program.pid}").first).to_be_visible()
            expect(gate.get_by_text("3 wait")).to_be_visible()
        assert all(program.poll() is None for program in programs)
        page.get_by_role("button", name="Open go-live").click()
        assert [program.wait(30) for program in programs] == [0, 0, 0]
        expect(page.get_by_role("status").filter(has_text="go-live is open")).to_be_visible()
        gate = other.get_by_role("listitem").filter(has_text="go-live").first
        expect(gate.get_by_text("open", exact=True)).to_be_visible()
        expect(gate.get_by_text("3 wait")).to_have_count(0)
        other.get_by_role("button", name="Re-arm go-live").click()
        gate = page.get_by_role("listitem").filter(has_text="go-live").first
        expect(gate.get_by_text("closed", exact=True)).to_be_visible()
        expect(gate.get_by_text("generation 2")).to_be_visible()


def test_a_lock_is_broken_by_its_name(browser: Browser, console: Console) -> None:
    with connect(console.store, label=f"holder {HOSTILE}") as client:
        held = client.lock(HOSTILE, ttl=60, alert=True).acquire()
        with signed_in(browser, console) as page, signed_in(browser, console) as other:
            lock = other.get_by_role("listitem").filter(has_text=HOSTILE).first
            expect(lock.get_by_role("timer")).to_contain_text("left")
            page.get_by_role("button", name=f"Break {HOSTILE}").click()
            dialog = page.get_by_role("dialog")
            expect(dialog.get_by_text("Only what checks the fence")).to_be_visible()
            confirm = dialog.get_by_role("button", name="Confirm")
            field = dialog.get_by_label("Type the name to confirm")
            field.fill("something else")
            expect(confirm).to_be_disabled()
            assert not held.lost.is_set()
            field.fill(HOSTILE)
            confirm.click()
            assert held.lost.wait(30) and "administrator" in held.reason
            expect(dialog).to_have_count(0)
            expect(lock.get_by_text("free", exact=True)).to_be_visible()
            expect(lock.get_by_role("button")).to_have_count(0)


def test_a_break_of_a_hold_that_is_over_spares_the_next_one(
    browser: Browser, console: Console
) -> None:
    with connect(console.store, label="first") as client, signed_in(browser, console) as page:
        first = client.lock("invoices", ttl=60).acquire()
        page.get_by_role("button", name="Break invoices").click()
        first.release()
        with client.sibling("second").lock("invoices", ttl=60) as second:
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Type the name to confirm").fill("invoices")
            dialog.get_by_role("button", name="Confirm").click()
            expect(dialog.get_by_role("alert")).to_contain_text("has changed since you looked")
            second.check()
            dialog.get_by_role("button", name="Cancel").click()


@pytest.mark.parametrize("theme", schemes("dark"))
def test_it_is_for_everyone(browser: Browser, console: Console, theme: str) -> None:
    assert AXE.exists(), "this needs axe-core: npm ci in console/"
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": 360, "height": 800},
        bypass_csp=True,  # axe is brought in by the test
    )
    page = context.new_page()
    page.goto(f"{console.url}/coordination")
    page.get_by_role("button", name="Use the development account").click()
    with connect(console.store, label="ann") as client, client.lock(f"seen-{theme}", ttl=60):
        client.gate(f"gate-{theme}").open({"version": 7})
        expect(page.get_by_role("button", name=f"Break seen-{theme}")).to_be_visible()
        expect(page.get_by_role("button", name=f"Re-arm gate-{theme}")).to_be_visible()
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run()")
        serious = [one["id"] for one in found["violations"] if one["impact"] != "minor"]
        assert serious == []
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        page.get_by_role("button", name=f"Break seen-{theme}").press("Enter")
        confirm_by_name(page.get_by_label("Type the name to confirm"), f"seen-{theme}")
        lock = page.get_by_role("listitem").filter(has_text=f"seen-{theme}").first
        expect(lock.get_by_text("free", exact=True)).to_be_visible()
    context.close()
