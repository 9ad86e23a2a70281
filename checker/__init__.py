"""Decides whether a history is linearizable. The answer is exact, or unknown.

A user of the library calls one of these:

- `checker.checking.check_file`: the history of a file, of a run's folder or of a pipe, as `labrys check` does;
- `checker.independent.check_keys`: operations in memory, with or without keys; `checker.analysis.analysis` for one object;
- `checker.linearizable.linearizability`: the parts of a verdict, for a workload.

The folders, in the order of a check: `formats` (and `edn`) read a history, `models` say what an object may do, `search` decides
with the kernel, `near` has the near-linear algorithms, `judging` the checkers of workloads, and `explain` says why.
"""
