"""S3 as a store for coordination: conditional writes of objects."""
