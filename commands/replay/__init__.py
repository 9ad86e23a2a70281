"""Runs a stored run again, and explains it."""
