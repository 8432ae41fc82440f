"""What a setup prints: a line for each thing that it made, left, or found to differ.

Lives here: the words of these lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_WIDTH: Final = 9

Tell = Callable[[str], None]
"""Prints a line."""


class SetupReport:
    """Prints the lines of a setup, and counts them.

    Arguments:
        overwrites: whether `--setup-overwrite` was given, so that lines need not name it.
    """

    def __init__(self, tell: Tell, overwrites: bool) -> None:
        self._tell = tell
        self.overwrites = overwrites

    def created(self, what: str) -> None:
        """Something was missing, and is there now."""
        self._line("created", what)

    def left(self, what: str) -> None:
        """Something was there, and was left as it is."""
        self._line("left", what)

    def set(self, what: str) -> None:
        """Something was there, and is now as in the file."""
        self._line("set", what)

    def differs(self, what: str, may_be_set: bool = True) -> None:
        """Something was there, is not as in the file, and was left as it is.

        Arguments:
            may_be_set: whether `--setup-overwrite` would set it.
        """
        hint = "; --setup-overwrite sets it" if may_be_set and not self.overwrites else ""
        self._line("differs", what + hint)

    def skipped(self, what: str) -> None:
        """Something in the file's folders was passed over."""
        self._line("skipped", what)

    def _line(self, verb: str, what: str) -> None:
        self._tell(f"{verb:<{_WIDTH}}{_shown(what)}")


def _shown(text: str) -> str:
    """Return a text without characters that begin a line, control a terminal or are no UTF-8."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )
