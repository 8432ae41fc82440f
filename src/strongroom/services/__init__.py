"""One pure decision per request, and the runner that guards, decides, commits and waits."""
