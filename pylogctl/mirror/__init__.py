"""`pylogctl mirror`: mirror topics into another cluster.

command.py   `pylogctl mirror`: keep a copy of topics in another cluster, and check it
document.py  the rows of `pylogctl mirror`, and the documents that show them
errors.py    the last error of each route of a mirror, stored in the source's ZooKeeper
facing.py    mirrors that face each other, which would copy the same messages for ever: how each
             is found
metrics.py   metrics of a running mirror, as Prometheus reads them
options.py   the options of the commands of `pylogctl mirror`
plan.py      the topics that a mirror selects, their names in the target, and how much of them
             is mirrored
run.py       one run of `pylogctl mirror run`: a service that mirrors until a signal ends it
verify.py    `pylogctl mirror verify`: compares topics with their mirrors, and renders the
             differences
"""
