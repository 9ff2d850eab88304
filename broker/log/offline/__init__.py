"""Tools for segment files that no broker has open.

`segments` finds the files, `inspect`, `records` and `verify` read them, `rewrite` and `archives`
make new ones of them. Only `recover` changes one.

    archives.py      archives of segments: what is in them, and restoring segments to a log at the
                     same offsets
    batch_verify.py  verifying a segment of Kafka's record batches, with the files beside it
    inspect.py       offline tools: inspect and measure segment files without a broker
    records.py       the batches of a segment file that Kafka wrote, their records, and where an
                     offset is
    recover.py       recovery by a tool: segment files are cut behind their last valid entry or
                     batch
    rewrite.py       offline tools that write new segment files from others: repair, split and merge
    segment_run.py   what verifying a segment file reports, and the run over it that both formats
                     have in common
    segments.py      segment files for tools: which files are segments, of this broker and of Kafka,
                     and archives
    verify.py        verifying segment files entry by entry, without a broker: damage inside them
                     and between them
"""
