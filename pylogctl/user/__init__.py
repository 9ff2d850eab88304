"""`pylogctl user`: who can log in at brokers.

changes.py   adds, changes and removes users, and shows and sets their quotas
command.py   `pylogctl user`: the options of its commands
"""
