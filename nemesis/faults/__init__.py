"""The kinds of faults, one module for each family."""
