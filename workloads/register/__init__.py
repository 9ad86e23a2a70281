"""Registers: reads, writes and compare-and-sets over independent keys, checked for linearizability."""

from workloads.register.options import RegisterOptions, Values
from workloads.register.workload import RegisterWorkload

__all__ = ["RegisterOptions", "RegisterWorkload", "Values"]
