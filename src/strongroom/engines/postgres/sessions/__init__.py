"""Sessions with PostgreSQL: how they are opened, checked and shared out."""
