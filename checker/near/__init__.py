"""Algorithms in near-linear time for common families: registers, sets, queues, counters."""
