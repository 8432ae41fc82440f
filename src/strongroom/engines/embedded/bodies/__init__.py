"""Bodies in segment files: how they are written, where they are stored, how space is reclaimed."""
