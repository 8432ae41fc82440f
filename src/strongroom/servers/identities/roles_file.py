"""The current role assignments: those of a file, or of the store, which may change at run time.

Lives here: finding assignments by principal. Must not live here: the formats and what roles permit
(auth/roles.py), how changes are found and made (identities/private_file.py,
identities/stored_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from strongroom.auth import roles
from strongroom.auth.roles import Assignment, Assignments, RolesError
from strongroom.servers.identities import private_file
from strongroom.servers.identities.private_file import RowsFormat, WatchedFile
from strongroom.servers.identities.stored_rows import StoredRows, WatchedRows
from strongroom.services.identities import IdentityRows, StoreIdentities

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_FORMAT: Final = RowsFormat(
    FILE_BYTES_MAX, roles.parse_document, roles.serialise_document, RolesError
)

Edit = Callable[[Assignments], Assignments]
_Key = tuple[str, str]
_Watched = WatchedFile[dict[_Key, Assignments]] | WatchedRows[dict[_Key, Assignments]]


def read_roles(path: Path) -> Assignments:
    """Raises: FileNotFoundError, OSError; RolesError with the file's name."""
    return private_file.read(path, FILE_BYTES_MAX, roles.parse_document, RolesError)


def change_roles(path: Path, edit: Edit) -> None:
    """Replace the assignments by those that `edit` returns. It gets none if there is no file."""
    private_file.change(path, _FORMAT, edit)


def roles_of(rows: IdentityRows) -> Assignments:
    """Return the assignments in a store. Raises: RolesError."""
    return tuple(roles.parse_row(name, text) for name, text in rows.rows.items())


async def change_stored_roles(store: StoreIdentities, edit: Edit) -> None:
    """Replace the assignments of a store by those that `edit` returns. `edit` is called again if
    another change comes between. Raises: RolesError, and as NOT_KEPT says."""

    def edited(rows: Mapping[str, bytes]) -> dict[str, bytes]:
        assignments = edit(roles_of(IdentityRows(rows=rows)))
        return {roles.row_name(one): roles.serialise_row(one) for one in assignments}

    await store.roles.edit(edited)


class ServedRoles:
    """The current role assignments.

    An invalid file changes nothing. If the file is deleted, there are no assignments.

    Arguments:
        file: the roles file; it need not exist. None = there is none.
        open_without: whether each principal may do everything while there is no file (development
            mode), or the store has never had a role.
        rows: the roles in the store, in place of a file.

    Raises: OSError, RolesError: the file exists, or there are rows, and cannot be used.
    """

    def __init__(
        self, file: Path | None, open_without: bool = False, *, rows: StoredRows | None = None
    ) -> None:
        self._open_without = open_without
        self._kept: _Watched | None = None
        if rows is not None:
            self._kept = WatchedRows(rows, lambda found: _indexed(roles_of(found)), {})
        elif file is not None:
            self._kept = WatchedFile(file, lambda path: _indexed(read_roles(path)), {})

    def of(self, principals: tuple[str, ...], account: str) -> Assignments:
        """Return the assignments of these principals in an account. The first principal is the
        user's id."""
        assignments = {} if self._kept is None else self._kept.get()
        if self.is_open:
            return roles.full_assignments(principals[0], account)
        return tuple(
            one for principal in principals for one in assignments.get((principal, account), ())
        )

    def all(self) -> Assignments:
        """Return every assignment, those of one principal together."""
        assignments = {} if self._kept is None else self._kept.get()
        return tuple(one for some in assignments.values() for one in some)

    @property
    def is_open(self) -> bool:
        """Whether every principal may do everything, since there is no file, and no role
        was ever in the store."""
        return self._open_without and (self._kept is None or not self._kept.exists)


def _indexed(assignments: Iterable[Assignment]) -> dict[_Key, Assignments]:
    indexed: dict[_Key, list[Assignment]] = {}
    for one in assignments:
        indexed.setdefault((one.principal, one.account), []).append(one)
    return {key: tuple(some) for key, some in indexed.items()}
