"""The map of keys, and the records of containers, queues, tables, blobs and jobs."""
