"""The state of this process beside the tables of opens: handles, watches, operations under way."""
