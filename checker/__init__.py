"""Decides whether a history is linearizable: exactly, or says that it does not know."""
