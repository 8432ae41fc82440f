"""The sources of copies on other servers: read, located here, and the check of their addresses."""
