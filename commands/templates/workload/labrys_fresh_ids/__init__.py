"""The workload fresh-ids for Labrys."""
