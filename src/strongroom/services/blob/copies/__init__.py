"""Copies of blobs: their sources, the jobs that make them, and what a copy becomes."""
