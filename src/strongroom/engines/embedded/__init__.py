"""The embedded engine: records in SQLite, bodies in segment files, one group commit.

Lives here: the store and the code that its parts share. `records/` holds the database, `log/` its
write-ahead log, `bodies/` the segment files.
"""

from strongroom.engines.embedded.store import EmbeddedEngine, open_store

__all__ = ["EmbeddedEngine", "open_store"]
