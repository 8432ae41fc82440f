"""Drivers run the steps of recipes: on threads, or on an event loop."""
