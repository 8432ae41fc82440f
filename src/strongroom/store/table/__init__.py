"""What tables keep: the records of entities, and their check."""
