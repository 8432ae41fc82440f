"""Records in SQLite: pages with checksums, caches of records, walks through all records."""
