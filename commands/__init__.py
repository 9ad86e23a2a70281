"""The commands that put a test together from all rooms: `test`, `plan`, `replay`, `suite`, and what they share.

This package stands above the rooms: it may import each of them, and none of them imports it.
"""
