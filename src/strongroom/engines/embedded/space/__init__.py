"""The space that is kept back for a full disk, and how it is used."""
