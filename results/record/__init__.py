"""The record of a run: its members, their stored forms, and its counterexamples."""
