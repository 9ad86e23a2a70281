"""The workload unique-ids for Labrys."""
