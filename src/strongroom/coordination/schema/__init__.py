"""The stored form: the keys that names become, and the records of locks and elections."""
