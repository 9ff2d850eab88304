"""`pylogctl audit`: compare message counts along a pipeline.

command.py  `pylogctl audit`: the options of its commands
options.py  options of the commands that compare counts with those of an audit topic
run.py      runs `pylogctl audit`: reads counts from an audit topic, compares and renders them
"""
