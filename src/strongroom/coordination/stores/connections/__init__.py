"""Code that several stores share: connection pools, change notifications, pauses."""
