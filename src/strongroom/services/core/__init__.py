"""What the decisions of all services share: the call, the place, the runner, waiting."""
