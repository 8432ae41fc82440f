"""Decisions on shares, and on what lies in them."""
