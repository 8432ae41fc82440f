"""Names that lead to ids: paths, and the writes that link, move and unlink an id."""
