"""Imports of another server's data: the folder of Azurite becomes a data directory.

Lives here: the public names. Must not live here: the folder's format (documents.py, scanning.py),
the writes (places.py, blobs.py, messages.py, entities.py), the order of the steps (run.py).

    from strongroom.importing import import_folder

    report = import_folder("old-azurite-folder", "new-data-directory")
    print(report.counts.blobs, report.is_complete)
"""

from strongroom.importing.folder import FolderChanged, ImportRefused, NotAnAzuriteFolder
from strongroom.importing.folder import is_azurite_folder as is_azurite_folder
from strongroom.importing.report import Counts, ImportReport, Remark
from strongroom.importing.run import ImportUnsound, import_folder

__all__ = [
    "Counts",
    "FolderChanged",
    "ImportRefused",
    "ImportReport",
    "ImportUnsound",
    "NotAnAzuriteFolder",
    "Remark",
    "import_folder",
    "is_azurite_folder",
]
