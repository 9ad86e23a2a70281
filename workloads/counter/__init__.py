"""Counters: adds of positive and negative amounts, and reads that must lie between bounds."""

from workloads.counter.workload import CounterOptions, CounterWorkload

__all__ = ["CounterOptions", "CounterWorkload"]
