"""The error table: the rows that several services share, and those of each service."""
