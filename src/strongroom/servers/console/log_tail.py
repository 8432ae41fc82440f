"""The newest warnings and errors of the server's own log (telemetry.py), for operators."""

from __future__ import annotations

import datetime
import logging
from collections import deque
from typing import Final

from strongroom.servers.console.api.documents import LoggedError

LINES_MAX: Final = 20
_CHARS_MAX: Final = 500
_LOGGER: Final = "strongroom"


class LogTail(logging.Handler):
    """Keeps the newest lines from level warning on, while it is open."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[LoggedError] = deque(maxlen=LINES_MAX)

    def open(self) -> None:
        logging.getLogger(_LOGGER).addHandler(self)

    def close(self) -> None:
        logging.getLogger(_LOGGER).removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = record.getMessage()[:_CHARS_MAX]
        self._lines.append(LoggedError(time=time, level=record.levelname.lower(), text=text))

    def newest(self) -> tuple[LoggedError, ...]:
        """Return the lines, the newest first."""
        return tuple(reversed(self._lines))
