"""How a run works, whatever is tested: operations, histories, generators, clients, nodes, time and chance.

This room imports no other room. Everything that knows a system, a fault, a workload or a report is built on what is here.
"""
