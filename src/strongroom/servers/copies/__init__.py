"""The sources of copies on other servers: read, and the check of their addresses."""
