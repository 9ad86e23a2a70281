"""Carries out runs: one, many, and the same one again."""
