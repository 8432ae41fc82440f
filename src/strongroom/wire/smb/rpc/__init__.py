"""DCE/RPC over the pipes of `IPC$`: as much of it as browsing a server's shares needs."""
