"""The law of Azure Storage as pure functions: (state, request, now) -> state or error."""
