"""Redis as a store for coordination."""
