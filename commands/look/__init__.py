"""Shows what is there: runs, logs, kinds and systems."""
