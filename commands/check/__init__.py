"""Checks and plots histories."""
