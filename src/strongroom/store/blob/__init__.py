"""The records of blobs: their bodies, and their integrity check."""
