"""Shared libraries of the system, by the name that its loader knows.

Source: dlopen(3).
"""

from __future__ import annotations

import ctypes


def shared_library(name: str) -> ctypes.CDLL:
    """Return a library; other threads run during its calls. Raises OSError."""
    return ctypes.CDLL(name)
