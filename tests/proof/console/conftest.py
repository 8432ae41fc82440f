"""The server and the browser of tests/interop/console, for the views' longer tests."""

from __future__ import annotations

from tests.interop.console.conftest import browser, console, new_console, served

__all__ = ["browser", "console", "new_console", "served"]
