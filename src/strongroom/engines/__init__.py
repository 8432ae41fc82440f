"""The contracts of a store, and the two engines that keep them: `memory/` and `embedded/`.

Must not live here: anything about Azure.
"""
