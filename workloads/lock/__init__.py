"""Locks: acquires and releases, checked for mutual exclusion and for growing fencing tokens."""

from workloads.lock.options import LockOptions
from workloads.lock.workload import LockWorkload

__all__ = ["LockOptions", "LockWorkload"]
