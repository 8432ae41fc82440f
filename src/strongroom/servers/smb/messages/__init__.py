"""From a frame to a command: the order of frames, chains, checks, sessions' set-up, answers."""
