"""Decides whether a history is linearizable. The answer is exact, or unknown.

A user of the library calls one of these:

- `checker.checking.check_file`: the history of a file, of a run's folder or of a pipe, as `labrys check` does;
- `checker.decide.decision.decide`: any history, e.g. operations in memory (`checker.decide.history.OfObjects`);
- `checker.linearizable.linearizability`: the parts of a verdict, for a workload.

The folders, from the ground up: `formats` (and `edn`) read a history, `models` say what an object may do, `search` has the
kernel's search, `near` the near-linear algorithms, `explain` says why, `decide` chooses the algorithm for each key, and
`judging` and `transactions` have the checkers of workloads. pyproject.toml has the whole order, and import-linter holds it.
"""
