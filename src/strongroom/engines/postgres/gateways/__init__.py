"""This gateway among the others: the table of all, heartbeats, holds, time."""
