"""A command that was ended because its hold was lost is told of, whoever noticed first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from strongroom.cli import hold
from strongroom.coordination import Held, child
from strongroom.coordination.child import Margins


@pytest.mark.parametrize(
    ("was_lost", "reason", "said"),
    [
        (False, "", ""),
        (True, "it was broken", "strongroom: 'x' is lost: it was broken\n"),
        (True, "", "strongroom: 'x' is lost: the command was ended before others could have it\n"),
    ],
)
def test_it_is_told_why(
    was_lost: bool,
    reason: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = SimpleNamespace(was_lost=was_lost, wait=lambda: child.LOST_EXIT)

    def begun(*given: Any, **more: Any) -> SimpleNamespace:
        return ended

    monkeypatch.setattr(child, "Child", begun)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    held = cast("Held", SimpleNamespace(name="x", reason=reason))
    assert hold._run(held, ["true"], Margins.of_ttl(3.0), {}) == child.LOST_EXIT
    assert capsys.readouterr().err == said
