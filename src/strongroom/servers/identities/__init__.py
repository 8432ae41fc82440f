"""The identities that are accepted: the files of accounts and roles, and the keys that sign bearer
tokens."""
