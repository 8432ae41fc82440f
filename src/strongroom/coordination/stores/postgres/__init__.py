"""PostgreSQL as a store of coordination."""
