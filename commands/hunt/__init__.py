"""Searches for an invalid run."""
