"""A folder in which Azurite keeps its data, and the folder of Strongroom's data beside it.

Lives here: how both are recognised, and what to type. Must not live here: the import itself
(`strongroom import-azurite`). Source: the names of the databases that Azurite 3.35 writes.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

DATA_NAME: Final = "strongroom-data"
# strongroom serve refuses a directory with this file; an import begins anew there.
_UNFINISHED: Final = "UNFINISHED"
_OF_A_DATA_DIRECTORY: Final = ("FORMAT", "records.sqlite")
_DATABASES: Final = "__azurite_db_*__.json"


def data_in(location: Path) -> Path:
    """Return the data directory of a location. What users keep there already stays beside it."""
    return location / DATA_NAME


def databases_in(location: Path) -> tuple[str, ...]:
    """Return the names of Azurite's databases in a folder, sorted. Nothing is written."""
    return tuple(sorted(path.name for path in location.glob(_DATABASES)))


def is_data_directory(location: Path) -> bool:
    """Whether a location is itself a data directory, which must not get another one inside."""
    return all((location / name).exists() for name in _OF_A_DATA_DIRECTORY)


def is_imported(location: Path) -> bool:
    """Whether a location has data of Strongroom, and no import that did not come to its end."""
    data = data_in(location)
    return data.exists() and not (data / _UNFINISHED).exists()


def import_command(location: Path) -> list[str]:
    """Return the command that imports Azurite's files of a location, beside them."""
    arguments = ["import-azurite", str(location), "--data", str(data_in(location))]
    return [sys.executable, "-m", "strongroom", *arguments]


def what_to_type(command: str, location: Path, databases: tuple[str, ...]) -> str:
    """Return why a location is not served yet, and the two commands that change that."""
    folder, data = shlex.quote(str(location)), shlex.quote(str(data_in(location)))
    return (
        f"{location} has data of Azurite ({', '.join(databases)}), which is not imported yet. "
        "Nothing was written. The import leaves these files as they are. Type:\n"
        f"  strongroom import-azurite {folder} --data {data}\n"
        f"  {command} --location {folder}\n"
        f"Or do both by one command: {command} --import --location {folder}"
    )
