"""`pylogctl zk`: show the registry in ZooKeeper, or start a server."""
