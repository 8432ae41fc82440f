"""State of this process beside the tables of opens: handles, watches, what is under way."""
