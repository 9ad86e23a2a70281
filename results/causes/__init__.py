"""Puts runs that are not as expected into groups by their causes, and says how often and since when each group is seen."""
