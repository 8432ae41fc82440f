"""Commands that look at a running server as its operator does."""
