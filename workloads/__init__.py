"""Workloads: a generator, a model and a checker that belong together."""
