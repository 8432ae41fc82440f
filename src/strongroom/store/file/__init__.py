"""What is kept of shares' directories and files."""
