"""A client's state in memory: its identity, its holds, their renewals, and outages."""
