"""Decides whether a history is linearizable. The answer is exact, or unknown."""
