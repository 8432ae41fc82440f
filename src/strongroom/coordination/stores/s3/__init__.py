"""S3 as a store of coordination: conditional writes of objects."""
