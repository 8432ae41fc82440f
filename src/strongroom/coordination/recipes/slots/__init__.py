"""Semaphores and barriers, and the slots of shared records that they are built on."""
