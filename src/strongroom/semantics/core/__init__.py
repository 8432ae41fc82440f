"""The rules that several services share: names, conditions, leases, lists, CORS."""
