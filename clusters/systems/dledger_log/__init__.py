"""DLedger's log: plain servers of the library without a state machine, and a client that appends and gets entries."""
