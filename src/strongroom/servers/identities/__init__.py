"""Who may ask: the files of accounts and roles, and the keys that sign bearer tokens."""
