"""The records of names that lead to ids."""
