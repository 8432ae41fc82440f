"""The rules of Azure Storage as pure functions: (state, request, now) -> state or error."""
