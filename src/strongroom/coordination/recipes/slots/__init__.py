"""Semaphores and barriers: the slots of one record."""
