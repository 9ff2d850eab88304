"""How clients reach brokers: connections, the cluster, offsets listed by brokers."""
