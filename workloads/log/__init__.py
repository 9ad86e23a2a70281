"""Logs: appends that answer an offset, and reads by offset and by range, judged by what a log promises."""

from workloads.log.options import LogOptions
from workloads.log.workload import LogWorkload

__all__ = ["LogOptions", "LogWorkload"]
