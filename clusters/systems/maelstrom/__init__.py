"""Programs that speak Maelstrom's protocol on stdin and stdout."""
