"""BookKeeper: bookies, their metadata in ZooKeeper, and clients as processes of their own."""
