"""Azure Storage as a store of coordination: by ETags or by leases."""
