"""`pylogctl broker`: start, stop and look at brokers.

command.py       `pylogctl broker`: start, stop and look at brokers
decommission.py  `pylogctl broker decommission`: asks, shows what moves, and names the
                 partitions that stay
document.py      the rows of `pylogctl broker`, and the documents that show them
options.py       the options of `broker start`; `service` runs the broker by them
service.py       runs a broker for `broker start`: its settings by source, the embedded
                 ZooKeeper, its end
stop.py          stops a broker for `broker stop`: by a request, or by a signal to its process
"""
