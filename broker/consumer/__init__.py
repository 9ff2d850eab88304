"""Consumers: the simple consumer, and consumer groups that rebalance themselves."""
