"""What systems share: connections, outcomes, waits, and the bases of JVMs and of Debian packages. It imports no system."""
