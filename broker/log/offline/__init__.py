"""Tools for segment files that no broker has open.

`segments` finds the files, `inspect` and `verify` read them, `rewrite` and `archives` make new ones
of them. Only `inspect.recover` changes one.

    archives.py  archives of segments: what is in them, and restoring segments to a log at the same
                 offsets
    inspect.py   offline tools: inspect, measure and recover segment files without a broker
    rewrite.py   offline tools that write new segment files from others: repair, split and merge
    segments.py  segment files for tools: which files are segments, of this broker and of Kafka 0.7,
                 and archives
    verify.py    verifying segment files entry by entry, without a broker: damage inside them and
                 between them
"""
