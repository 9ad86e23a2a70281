"""DLedger, a Raft library in Java: a node with a replicated map of registers (see `node/`), and its client."""
