"""A small Raft of Labrys for the simulated cluster: correct, or with one planted bug."""
