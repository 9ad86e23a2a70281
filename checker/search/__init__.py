"""The exact search: encoding, the kernel, and what is left of a history when it is relaxed."""
