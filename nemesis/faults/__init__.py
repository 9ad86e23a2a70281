"""Faults as data, one module for each family."""
