"""DCE/RPC over the pipes of `IPC$`, as far as clients need it to browse a server's shares."""
