"""Java programs in the simulator: all nodes are processes in one JVM, which runs their threads in virtual time."""
