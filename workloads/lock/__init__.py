"""Locks: acquired and released, judged by who certainly held them and by their fencing tokens."""

from workloads.lock.options import LockOptions
from workloads.lock.workload import LockWorkload

__all__ = ["LockOptions", "LockWorkload"]
