"""Unique ids: reserved ranges, and the article's generator."""
