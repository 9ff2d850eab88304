"""`pylogctl metrics`: metrics topics into another cluster.

command.py  `pylogctl metrics`: what Prometheus reads of groups
groups.py   `pylogctl metrics serve`: groups as an observer outside sees them, for Prometheus
"""
