"""Programs on stdin and stdout as nodes: the harness starts them, and carries every message between them."""
