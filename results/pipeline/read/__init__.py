"""Reads: from the user's paths to one table of operations, what runs say about themselves, and what does not fit."""
