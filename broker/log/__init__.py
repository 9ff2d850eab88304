"""Logs: segment files, and appending, reading, flushing, recovery and retention of them.

Knows message sets (through `broker.protocol`), but no sockets and no ZooKeeper.

    aborted.py         which batches of a log of Kafka are of aborted transactions, by its
                       `.txnindex` files
    archiving.py       archiving: what a policy does with segments past retention, and the archive
                       that one fills
    batch_index.py     which position an offset, or a time, has in a segment of record batches
    batches.py         record batches in segment files: block scans, and good batches behind damage
    checkpoints.py     writing the checkpoints of all logs: recovery points, high watermarks, and
                       where the logs are
    cleaner.py         the cleaner: the thread that compacts logs, the one with the largest dirty
                       part first
    compaction.py      compaction of a log of record batches: of the records with one key, only the
                       last one stays
    creation.py        creation of topics and logs: by the first append, by a request, and as
                       replicas
    damage.py          comparing copies of a log by digests, finding damaged messages, and replacing
                       their files
    data_directory.py  one data directory of a broker: its lock, owner, clean-shutdown marker and
                       what is where in it
    deletion.py        deletion of topics and replicas: the files are moved aside first, and removed
                       by a thread
    directories.py     the data directories of one broker: which of them can be used, and which log
                       is in which
    expiry.py          which of the oldest segments are past an age or a size: of a log, and of its
                       archive
    flusher.py         the flusher: flushes each log when it is due, on a few threads shared by all
                       logs
    format.py          the format of a log: names of segments, their bytes, and which position an
                       offset has in them
    log.py             the log of one partition: append, read, roll, flush and truncate
    log_parts.py       parts of a log: listeners of its offsets, what no flush has made durable, and
                       incarnations
    log_segments.py    the segments of one log: opening and cutting their files, and what is known
                       of bad ones
    manager.py         all logs of one broker, from its start to its stop; loading them, recovered
                       where they were not closed cleanly
    moves.py           moves of logs between the data directories of a broker, which serves them
                       meanwhile
    policies.py        deletion policies that are plug-ins: each decides in a thread of its own what
                       may be deleted
    producer_rows.py   idempotent appends to a log of 0.7: a file of rows beside the segments
    producers.py       idempotent and transactional producers of a log of batches: validation of
                       sequences, and snapshots
    recovery.py        recovery: loading the segments of a log, and truncating a log that was not
                       closed cleanly
    replica_files.py   the files beside the segments of a replicated log: epochs, creation id, and
                       record
    retention.py       retention: removing the segments past their age or size, after what their
                       policy does with them
    scan.py            finding entries in a segment file: block scans, boundaries, and good entries
                       behind damage
    segment.py         segment files: their descriptors, sparse boundary index and the system calls
                       on them
    side_files.py      Kafka's files beside the segments of a partition: each entry is validated
                       when it is read
    table.py           the topics and logs of one broker, and the locks under which the set of
                       them changes
"""
