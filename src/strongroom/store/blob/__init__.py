"""What blobs keep: their bodies, and the check of their records."""
