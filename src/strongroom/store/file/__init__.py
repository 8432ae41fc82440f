"""The records of shares' directories and files."""
