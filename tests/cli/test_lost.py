"""The message about a command that was ended by a loss; test_child.py tests when that happens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from strongroom.cli.coordination import hold
from strongroom.coordination import Held
from strongroom.coordination.processes import child
from strongroom.coordination.processes.child import Margins


@pytest.mark.parametrize(
    ("reason", "said"),
    [("", ""), ("it was broken", "strongroom: 'x' is lost: it was broken\n")],
)
def test_it_is_told_why(
    reason: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = SimpleNamespace(reason=reason, wait=lambda: child.LOST_EXIT)

    def begun(*given: Any, **more: Any) -> SimpleNamespace:
        return ended

    monkeypatch.setattr(child, "Child", begun)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    held = cast("Held", SimpleNamespace(name="x"))
    assert hold._run(held, ["true"], Margins.of_ttl(3.0), {}) == child.LOST_EXIT
    assert capsys.readouterr().err == said
