"""Locks: acquires and releases, checked for mutual exclusion and for growing fencing tokens."""

from workloads.lock.workload import LockOptions, LockWorkload

__all__ = ["LockOptions", "LockWorkload"]
