"""Bodies outside of the records' engine: what keeps them, and where (places.py)."""
