"""From the user's paths to one table of operations, the records of runs, and the malformed rows."""
