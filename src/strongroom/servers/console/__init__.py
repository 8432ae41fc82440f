"""The console: one port with a page, the data of all services, and a read API."""
