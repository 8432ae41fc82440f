"""PostgreSQL as a store for coordination."""
