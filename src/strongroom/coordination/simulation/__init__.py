"""The simulator: the shipped recipes in virtual time, over a bad network, repeatable by seed.

Nothing here sleeps or reads a clock. A run is a function of its seed, and takes milliseconds.
"""
