"""Counters: adds of positive and negative amounts, and reads that must lie between bounds."""

from workloads.counter.options import CounterOptions
from workloads.counter.workload import CounterWorkload

__all__ = ["CounterOptions", "CounterWorkload"]
