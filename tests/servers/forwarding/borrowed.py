"""The conformance tests of one server, for modules that run them over two gateways.

The fixtures of conftest.py take the place of those that the tests have there.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from tests.effort import stride

_SHARE: Final = 3
"""In `make test`, every third test."""


def borrowed(module: ModuleType, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a module's tests, and the fixtures that it has for them.

    Arguments:
        without: tests that need servers of their own.
    """
    assert set(without) <= vars(module).keys(), "a test that is left out does not exist"
    own = {
        name: found
        for name, found in vars(module).items()
        if getattr(found, "__module__", None) == module.__name__ and name not in without
    }
    fixtures = {
        name: found
        for name, found in vars(module).items()
        if type(found).__name__ == "FixtureFunctionDefinition"
    }
    tests = [(name, found) for name, found in own.items() if name.startswith("test_")]
    return dict(tests if stride() == 1 else tests[::_SHARE]) | fixtures
