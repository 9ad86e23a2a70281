"""Dataflow for keys of registers that are too large for one worker; docs/large-keys.md describes it."""
