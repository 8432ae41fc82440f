"""Azure Storage as a store for coordination: by ETags or by leases."""
