"""The rules of files: one model for REST and SMB."""
