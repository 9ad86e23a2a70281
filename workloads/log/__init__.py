"""Logs: appends that return an offset, and reads by offset and by range, checked against the guarantees of a log."""

from workloads.log.options import LogOptions
from workloads.log.workload import LogWorkload

__all__ = ["LogOptions", "LogWorkload"]
