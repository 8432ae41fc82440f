"""The map of keys, and the records of containers, queues, tables, shares and jobs."""
