"""A run while it goes on: progress, the summary on the terminal, and the server of the store."""
