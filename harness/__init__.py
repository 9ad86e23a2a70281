"""The parts of a run that do not depend on the system: operations, histories, generators, clients, nodes, time, randomness.

This room imports no other room. The rooms with systems, faults, workloads and reports import this one.
"""
