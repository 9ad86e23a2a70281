"""Ends a node at every step of its disk, with every state that the disk may have then."""
