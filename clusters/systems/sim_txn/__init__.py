"""A small transactional store of Labrys for the simulated cluster, with levels, correct or with one planted bug."""
