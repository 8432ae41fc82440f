"""The contracts of a store, and two engines that keep them: `memory/` and `embedded/`.

Must not live here: anything about Azure.
"""
