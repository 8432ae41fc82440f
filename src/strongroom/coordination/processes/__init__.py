"""A command that runs only while a lock is held, and the process that ends it in time."""
