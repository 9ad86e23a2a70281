"""A small BookKeeper of Labrys for the simulated cluster, with three protocols: correct, or with one planted bug."""
