"""Timelines of each run, and comparisons of runs with earlier runs."""
