"""What was around a violation: faults, cuts, messages, and what was lost."""
