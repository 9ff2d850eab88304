"""Clients: connections, discovery, producer and consumers."""
