"""`pylogctl archive`: lists archived segments, and restores them.

command.py    `pylogctl archive`: list and restore the segments that policy archive keeps
"""
