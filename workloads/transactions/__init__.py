"""Transactions over several keys, checked for the anomalies of Adya and Elle."""

from workloads.transactions.workload import (
    ListAppendOptions,
    ListAppendWorkload,
    RwRegisterOptions,
    RwRegisterWorkload,
)

__all__ = ["ListAppendOptions", "ListAppendWorkload", "RwRegisterOptions", "RwRegisterWorkload"]
