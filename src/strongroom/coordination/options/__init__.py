"""What callers configure: arguments, options of a URL, and environment variables."""
