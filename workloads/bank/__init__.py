"""The bank: transfers between accounts, and reads of all balances, whose sum never changes."""

from workloads.bank.workload import BankOptions, BankWorkload

__all__ = ["BankOptions", "BankWorkload"]
