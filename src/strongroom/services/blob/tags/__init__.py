"""Tags of blobs: setting, reading, copying, and the searches by them."""
