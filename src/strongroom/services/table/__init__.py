"""Decisions on tables and their entities."""
