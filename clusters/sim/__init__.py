"""The simulated cluster `sim`: its nodes are objects in this process, in virtual time, on one thread, from one seed."""
