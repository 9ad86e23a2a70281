"""Exhaustive search: every order of messages, timers, requests and restarts of a simulated system, within bounds.

`search` visits the states of the whole cluster. `nodes` knows the states of single nodes, and carries out their events with the
processes of the system. `host` is the machine that a process sees, `form` compares processes, `history` has the operations.
"""
