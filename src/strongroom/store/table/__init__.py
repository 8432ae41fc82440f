"""The records of entities, and their check."""
