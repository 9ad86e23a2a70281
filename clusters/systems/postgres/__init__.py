"""PostgreSQL of Debian's package: one primary, and hot standbys on the other nodes."""
