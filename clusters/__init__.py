"""Clusters of nodes, and the systems under test that run on them."""
