"""Workloads: a generator, a model and a checker that belong together.

Labrys finds a workload by its entry point; see `harness.workload.Workload`.
"""
