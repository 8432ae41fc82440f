"""A simulated disk for stores under test: it can lose power, fail, or fill up.

Lives here: the disk, and SQLite's access to it. Must not live here: what a store promises.
"""
