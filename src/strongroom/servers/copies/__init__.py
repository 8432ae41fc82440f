"""Reading the source of a copy from another server, and the check of its address."""
