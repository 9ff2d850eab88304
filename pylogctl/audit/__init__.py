"""`pylogctl audit`: compare message counts along a pipeline.

command.py  `pylogctl audit`: the options of its commands
gaps.py     finds numbers that lack, or come again, in messages with envelopes: `pylogctl audit
            gaps`
options.py  options of the commands that compare counts with those of an audit topic
run.py      runs `pylogctl audit`: reads counts from an audit topic, compares and renders them
"""
