"""The exact search: encoding, the kernel, independent keys, and the order that a system reports."""
