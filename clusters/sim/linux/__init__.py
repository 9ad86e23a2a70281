"""Unmodified Linux programs in virtual time: a controller in Rust that owns their time, threads and network.

No command uses it yet. `controller/` has the controller, `building` makes it, and `driving` starts one and speaks its protocol.
"""
