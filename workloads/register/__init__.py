"""Registers: reads, writes and compare-and-sets over independent keys, checked for linearizability."""

from workloads.register.workload import RegisterOptions, RegisterWorkload, Values

__all__ = ["RegisterOptions", "RegisterWorkload", "Values"]
