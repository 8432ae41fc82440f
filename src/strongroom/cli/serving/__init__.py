"""What a served process tells the programs that started it: a file, and the service manager."""
