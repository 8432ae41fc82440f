"""The only module of the coordination toolkit that reads environment variables.

Lives here: one function.
"""

from __future__ import annotations

import os


def variable(name: str) -> str:
    """Return an environment variable; empty if it is not set."""
    return os.environ.get(name, "")
