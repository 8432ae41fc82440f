"""Bodies of a store in PostgreSQL: how they arrive, are read, and are removed."""
