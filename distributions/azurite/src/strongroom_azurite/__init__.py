"""The commands of Azurite, served by Strongroom: flags, environment and lines of output.

Only the version lives here. What Strongroom offers to programs like this one is written in
docs/reference/serving.md of its repository, and nothing else is imported.
"""

__version__ = "0.1.0"
