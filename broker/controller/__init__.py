"""The controller of a cluster: decides which replicas lead, and tells all brokers."""
