"""Faults: what breaks, where, when, the proof that it broke, and its healing."""
