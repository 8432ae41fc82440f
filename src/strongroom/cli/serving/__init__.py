"""What a served process tells: its user, a file, and the service manager."""
