"""Tools for segment files that no broker has open.

`segments` finds the files, `inspect` and `verify` read them, `rewrite` makes new ones of them. Only
`inspect.recover` changes one.

    inspect.py   offline tools: inspect, measure and recover segment files without a broker
    rewrite.py   offline tools that write new segment files from others: repair, split and merge
    segments.py  segment files for tools: which files are segments, of this broker and of Kafka 0.7,
                 and archives
    verify.py    verifying segment files entry by entry, without a broker: damage inside them and
                 between them
"""
