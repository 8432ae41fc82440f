"""An operator's work on a data directory: its facts, checks, upgrades, and backups."""
