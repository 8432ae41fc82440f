"""Shared by the declarations of the blob service: the fields that are read and returned."""
