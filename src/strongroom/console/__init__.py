"""The part of the console that uses the coordination toolkit: gates, locks and their like."""
