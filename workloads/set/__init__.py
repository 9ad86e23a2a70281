"""Sets: adds of unique elements and reads of all of them, judged element by element and as a whole."""

from workloads.set.options import SetOptions
from workloads.set.workload import SetWorkload

__all__ = ["SetOptions", "SetWorkload"]
