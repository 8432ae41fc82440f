"""The upgrade of a data directory or a backup from the format before this one."""
