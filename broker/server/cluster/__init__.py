"""This broker as one of a cluster: its replicas, their fetchers, the office of controller."""
