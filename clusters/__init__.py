"""Where nodes come from, and what runs on them."""
