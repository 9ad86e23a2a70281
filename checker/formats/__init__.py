"""Histories in files, in our own formats and those of other tools. They become the same operations, or are refused."""
