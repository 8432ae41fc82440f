"""Bodies in segment files: how they come in, where they lie, how space comes back."""
