"""Records in SQLite: pages with checksums, caches of what was read, walks through all of it."""
