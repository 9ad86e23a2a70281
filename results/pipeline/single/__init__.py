"""The job in one process, for small inputs: the same tables, in a few seconds, without Spark and Java."""
