"""The job in one process, for histories that are few: the same tables, in a few seconds, without Spark and without Java."""
