"""The store of runs: folders, documents, and their readers and writers."""
