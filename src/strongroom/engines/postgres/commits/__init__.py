"""Updates: lined up, decided in batches, committed, and their outcomes."""
