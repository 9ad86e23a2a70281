"""Ledgers: appends by one writer, reads of confirmed entries, and recoveries that fence the writer and close the ledger."""

from workloads.ledger.workload import LedgerOptions, LedgerWorkload

__all__ = ["LedgerOptions", "LedgerWorkload"]
