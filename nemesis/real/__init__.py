"""Actors on real nodes, one module for each family of faults."""
