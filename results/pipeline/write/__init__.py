"""Writes: the output folder, its page and its pictures."""
