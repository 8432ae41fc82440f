"""The Access view of the console: accounts, roles, and a shared access signature explained."""
