"""ZooKeeper: sessions, the registry of brokers, topics and consumer groups, an embedded server."""
