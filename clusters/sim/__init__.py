"""The place `sim`: nodes that exist only inside Labrys, in virtual time, on one thread, from one seed."""
