"""Runs the tests of a file."""
