"""Copies of blobs: the requests, their sources, and the jobs that complete pending copies."""
