"""The operations of page blobs only: writing and listing pages."""
