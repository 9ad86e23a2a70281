"""Workloads: a generator, a model and a checker that belong together.

A workload is found by its entry point; see `harness.workload.Workload`.
"""
