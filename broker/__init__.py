"""A commit-log broker that keeps Kafka 0.7's promises, and the clients to use it."""
