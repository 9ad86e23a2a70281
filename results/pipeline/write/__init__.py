"""The output folder, its page and its pictures."""
