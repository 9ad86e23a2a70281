"""Prepares systems, clusters and packages."""
