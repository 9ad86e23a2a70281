"""Unmodified Linux programs in virtual time: a controller in Rust that owns their time, threads and network.

`controller/` has the controller, `building` makes it, and `driving` starts one and speaks its protocol. `world` and `cluster`
let a run use it. `calls` finds the first difference of two logs of calls.
"""
