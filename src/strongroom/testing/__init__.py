"""Support for tests of Strongroom, and for tests of programs that use it.

Lives here: a real server to test against (`InProcessServer`, `Server`), its movable clock, the
history checker and its models. Nothing in the server may import this package. See docs/testing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strongroom.testing.server import InProcessServer, Server

__all__ = ["InProcessServer", "Server"]


def __getattr__(name: str) -> object:
    # The server is imported on first use. So a program that only checks histories does not wait for
    # it. Nor does a test run that has the plugin without using it.
    if name in __all__:
        from strongroom.testing import server

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
