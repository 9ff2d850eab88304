"""`pylogctl cluster`: brokers, leaders and replicas of the whole cluster."""
