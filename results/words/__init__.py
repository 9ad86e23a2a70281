"""Numbers and labels as a reader sees them, and the bounds of what a page shows."""
