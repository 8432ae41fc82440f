"""The only module of the coordination toolkit that reads environment variables.

Lives here: one function. Must not live here: what a variable means (the stores' `open_url`).
"""

from __future__ import annotations

import os


def variable(name: str) -> str:
    """Return an environment variable; empty if it is not set."""
    return os.environ.get(name, "")
