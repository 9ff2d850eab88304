"""`pylogctl acl`: rules of who may do what.

command.py   `pylogctl acl`: the options of its commands
work.py      changes rules, shows them, and explains decisions
"""
