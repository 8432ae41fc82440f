"""The current role assignments: those of a file that may change at run time.

Lives here: finding assignments by principal. Must not live here: the file's format and what roles
permit (auth/roles.py), the file's change detection and replacement (identities/private_file.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from strongroom.auth import roles
from strongroom.auth.roles import Assignment, Assignments, RolesError
from strongroom.servers.identities import private_file
from strongroom.servers.identities.private_file import WatchedFile

FILE_BYTES_MAX: Final = 4 * 1024 * 1024

Edit = Callable[[Assignments], Assignments]
_Key = tuple[str, str]


def read_roles(path: Path) -> Assignments:
    """Raises: FileNotFoundError, OSError; RolesError with the file's name."""
    return private_file.read(path, FILE_BYTES_MAX, roles.parse_document, RolesError)


def change_roles(path: Path, edit: Edit) -> None:
    """Replace the assignments by those that `edit` returns. It gets none if there is no file."""
    private_file.change(path, read_roles, roles.serialise_document, edit)


class ServedRoles:
    """The current role assignments.

    An invalid file changes nothing. If the file is deleted, there are no assignments.

    Arguments:
        file: the roles file; it need not exist. None = there is none.
        open_without: whether each principal may do everything while there is no file (development
            mode).

    Raises: OSError, RolesError: the file exists and cannot be used.
    """

    def __init__(self, file: Path | None, open_without: bool = False) -> None:
        self._open_without = open_without
        self._file: WatchedFile[dict[_Key, Assignments]] | None = None
        if file is not None:
            self._file = WatchedFile(file, _indexed, {})

    def of(self, principals: tuple[str, ...], account: str) -> Assignments:
        """Return the assignments of these principals in an account. The first principal is the
        user's id."""
        assignments = {} if self._file is None else self._file.get()
        if self.is_open:
            return roles.full_assignments(principals[0], account)
        return tuple(
            one for principal in principals for one in assignments.get((principal, account), ())
        )

    def all(self) -> Assignments:
        """Return every assignment of the file, those of one principal together."""
        assignments = {} if self._file is None else self._file.get()
        return tuple(one for some in assignments.values() for one in some)

    @property
    def is_open(self) -> bool:
        """Whether every principal may do everything, since there is no file."""
        return self._open_without and (self._file is None or not self._file.exists)


def _indexed(path: Path) -> dict[_Key, Assignments]:
    indexed: dict[_Key, list[Assignment]] = {}
    for one in read_roles(path):
        indexed.setdefault((one.principal, one.account), []).append(one)
    return {key: tuple(some) for key, some in indexed.items()}
