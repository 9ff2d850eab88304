"""`pylogctl zk`: look into the registry in ZooKeeper, or start one."""
