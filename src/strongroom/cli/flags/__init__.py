"""The flags of `strongroom serve`: one table of rows, and what is made of them.

A flag is one row in table.py. Its option, its line in `--help`, its environment variable, its key
in the configuration file and its place in the settings follow from the row.
"""
