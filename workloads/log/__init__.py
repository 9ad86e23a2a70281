"""Logs: appends that return an offset, and reads by offset and by range, checked against the guarantees of a log."""

from workloads.log.workload import LogOptions, LogWorkload

__all__ = ["LogOptions", "LogWorkload"]
