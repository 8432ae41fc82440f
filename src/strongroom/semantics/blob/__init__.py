"""The rules of blobs."""
