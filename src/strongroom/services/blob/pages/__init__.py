"""The operations that only page blobs have: pages are written, listed and copied incrementally."""
