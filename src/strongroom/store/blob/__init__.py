"""The records of blobs: their bodies, and the check of their records."""
