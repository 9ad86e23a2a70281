"""The commands that compose a test from all rooms, such as `test`, `replay` and `suite`, and the code that they share.

This package may import every room, and no room imports it.
"""
