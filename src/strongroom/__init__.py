"""Strongroom: a strongly consistent storage server that speaks the Azure Storage protocol.

Only the version lives here. Import what you need from the package's modules.
"""

__version__ = "0.1.0"
