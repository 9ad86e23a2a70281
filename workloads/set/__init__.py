"""Sets: adds of unique elements and reads of all of them, checked by single elements and as a whole."""

from workloads.set.workload import SetOptions, SetWorkload

__all__ = ["SetOptions", "SetWorkload"]
