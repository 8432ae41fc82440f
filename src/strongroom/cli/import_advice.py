"""What a command says when it is given the folder of another server in place of a data directory.

Lives here: the sentence that names the import.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from strongroom.engines.embedded.disk.directory import NotADataDirectory


def explained(error: BaseException, directory: Path | None) -> str:
    """It names the import if the directory is a folder of Azurite.

    `error` says why the directory cannot be used, or was raised from that one.
    """
    text = str(error)
    if directory is None or not isinstance(error.__cause__ or error, NotADataDirectory):
        return text
    from strongroom.importing.folder import is_azurite_folder

    with suppress(OSError):
        if is_azurite_folder(directory):
            return (
                f"{text}. It is a folder of Azurite. This makes a data directory of it: "
                f"strongroom import-azurite {shlex.quote(str(directory))} --data NEW_DIRECTORY"
            )
    return text
