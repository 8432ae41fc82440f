"""`strongroom` whose gateways tell each other nothing: each notification is lost."""

from __future__ import annotations

from strongroom.cli import main
from strongroom.engines.postgres.gateways.members import SharedTable


def _lost(self: SharedTable, payload: str) -> None:
    """A notification is a hint, which may be lost."""


if __name__ == "__main__":
    SharedTable.send = _lost  # type: ignore[method-assign]  # of this process alone
    main()
