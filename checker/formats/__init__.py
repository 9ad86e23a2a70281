"""Histories in files: our own formats and those of other tools, each read to the same operations, or refused with a reason."""
