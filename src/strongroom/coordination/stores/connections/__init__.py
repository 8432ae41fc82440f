"""What several stores share: pools of connections, listening for changes, pauses."""
