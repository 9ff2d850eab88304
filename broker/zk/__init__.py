"""ZooKeeper: the registry of brokers, topics and consumer groups, and an embedded server for it."""
