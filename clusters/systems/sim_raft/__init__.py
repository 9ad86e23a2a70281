"""Our own small Raft, for the simulated place: correct, or with one planted bug."""
