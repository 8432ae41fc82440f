"""Bodies of requests and of answers: bounded, verified and decoded on their way in, and read again
where a blob changes while it is sent."""
