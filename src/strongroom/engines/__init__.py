"""The contracts of a store, and the two engines that keep them: `memory/` and `embedded/`."""
