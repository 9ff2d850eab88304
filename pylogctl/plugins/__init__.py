"""`pylogctl plugins`: the plug-ins that are installed.

command.py  the options of its commands
"""
