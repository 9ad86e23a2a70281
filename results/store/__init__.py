"""The store of runs: its folders, names and limits."""
