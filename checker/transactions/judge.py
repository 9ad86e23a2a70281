
The kernel (`checker/kernel/src/transactions`) finds the anomalies. A consistency model decides which of them make the history
invalid. There is no time-out; only one part of G-SI is searched, within a limit of steps.
"""

