"""The records of entities, and their integrity check."""
