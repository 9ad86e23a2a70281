"""From operations to a verdict for each run and key."""
