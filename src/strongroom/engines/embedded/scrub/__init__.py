"""The scrub: everything that a store keeps is read once in some days, to find damage in time."""
