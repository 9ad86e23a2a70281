"""Faults: their kinds, the plan, the injection, the proof of the effect, and the healing."""
