"""The documents of a run: how they are written and read."""
