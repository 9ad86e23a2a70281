"""The simulated cluster `sim`: its nodes are objects of this process. They run in virtual time, on one thread, from one seed."""
