"""The browser that uses the console, and what must hold of everything that it did.

Lives here: starting Debian's Chromium by Playwright's library, a page that is watched, axe. Must
not live here: fixtures (conftest.py), what a person does in a view (test_*.py).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect, sync_playwright

from tests.effort import stride

CONSOLE_SOURCES = Path(__file__).resolve().parents[3] / "console"
_AXE = CONSOLE_SOURCES / "node_modules" / "axe-core" / "axe.min.js"
# A name whose owner lets it point at this machine, as in an attack by DNS rebinding.
REBOUND = "rebound.test"
# What is no loopback address has no address at all.
_FLAGS = (
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , "
    "EXCLUDE localhost",
    # The server must refuse other pages by itself, not only where a browser guards loopback.
    "--disable-features=LocalNetworkAccessChecks",
)
_NO_SANDBOX = ("--no-sandbox",) if os.geteuid() == 0 else ()
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
_HEADING_IS_FOCUSED = "() => document.activeElement.matches('main h1, main h2')"
# Tests wait for events; this only ends those that never come.
EVENT_TIMEOUT_MS = 60_000
expect.set_options(timeout=EVENT_TIMEOUT_MS)
_IMPACTS = ("serious", "critical")
SCHEMES = ("light", "dark")


def schemes(usual: str) -> tuple[str, ...]:
    """Return the colour schemes in which a view is looked at: both in `make proof`, else one.

    Each view names its usual one. Some are dark, so both are looked at in `make interop` too.
    """
    return SCHEMES if stride() == 1 else (usual,)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Provide a browser; fail, naming the remedy, if there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail(
            "Chromium is missing: install it (Debian: apt install chromium).", pytrace=False
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *_NO_SANDBOX])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Console:
    """The console in one page of the browser, as one person uses it.

    Attributes:
        url: of the console's origin, without a slash at the end.
        sent: every request of the page.
        complaints: what the page wrote to the browser's console as an error, or raised.
    """

    page: Page
    url: str
    sent: list[Request] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.add_init_script(_WATCH)
        self.page.on("request", lambda request: self.sent.append(request))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: str = "/") -> None:
        """Open an address of the console."""
        self.page.goto(f"{self.url}{path}")

    def sign_in(self, path: str = "/") -> None:
        """Open an address, and sign in with the development account."""
        self.open(path)
        self.use_development_account()

    def use_development_account(self) -> None:
        """Sign in where one is, and wait until the heading has the focus.

        The page gives it the focus after it is drawn. A key pressed earlier would be lost.
        """
        self.button("Use the development account").click()
        self.page.get_by_role("navigation", name="Main").wait_for()
        self.page.wait_for_function(_HEADING_IS_FOCUSED)

    def button(self, name: str) -> Locator:
        """Return the button of exactly this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> Locator:
        """Return the link of the navigation to a view."""
        return self.page.get_by_role("navigation", name="Main").get_by_role("link", name=name)

    def heading(self, name: str) -> Locator:
        """Return the heading of level 1 of this name."""
        return self.page.get_by_role("heading", name=name, level=1, exact=True)

    def must_be_clean(self) -> None:
        """Assert what holds always: own origin only, nothing against the policy, no error."""
        foreign = [one.url for one in self.sent if not one.url.startswith((self.url, "blob:"))]
        assert foreign == []
        assert self.page.evaluate("window.violations") == []
        assert self.complaints == []

    def serious_findings(self) -> list[str]:
        """Return what axe finds serious in what is shown."""
        if not _AXE.is_file():
            pytest.fail(
                "axe-core is missing: run 'make interop' or 'npm ci' in console/.", pytrace=False
            )
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate("axe.run()")
        return [
            f"{one['id']}: {node['html']}"
            for one in found["violations"]
            if one["impact"] in _IMPACTS
            for node in one["nodes"]
        ]
