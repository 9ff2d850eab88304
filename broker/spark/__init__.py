"""Topics in Spark: the data source `pylog`, and jobs made of it.

No other package of the library imports this one; it needs the extra `spark`. Programs import the
modules beside the rooms `reading`, `loading` and `runtime`, which have their parts. Start here:

    | module        | content                                                                     |
    | session       | `open_session`: a quiet Spark session for commands                          |
    | source        | `PylogDataSource`, registered in Spark; `read_messages`, `stream_messages` |
    | options       | the options below, parsed; offsets as text and documents                    |
    | schema        | the columns                                                                 |
    | load          | `run_load`: topics into files, each message once                            |
    | load_table    | `run_table_load`: topics into a table of Iceberg or Delta                    |
    | tables        | tables of Iceberg and Delta, by Spark's own writers                         |
    | compaction    | `compact`: the small files of many loads into few                           |
    | queries       | SQL on topics, as text or columns of their JSON; what a query's plan reads  |
    | extraction    | `events`: key and time out of payloads, by fields of JSON or a pattern      |
    | events        | counts of events per key in windows; joins with events or with a table      |
    | audit         | counts of messages in topics and loads, compared with those of producers    |
    | verify        | segment files validated by all machines                                     |
    | local         | `LocalProcesses`: loads and compactions without Spark                       |
    | jobs          | tasks with progress; `cause_of`: the `BrokerError` behind a Spark failure   |

A batch read goes through `source` (options parsed), then `batch_reader`, `planner` (ranges resolved
and cut with the cluster open once; `segment_logs` without a broker) and, on executors,
`task_reader`, which turns a `ranges.ReadTask` into Arrow batches, all in `reading`. There
`stream_reader` plans each micro-batch. `writer` sends rows.

Options of a read. They have the meaning of those of Spark's Kafka source, except that an offset is
a byte position and a partition is named `HOME-INDEX`:

    | option                   | default  | meaning                                                |
    | brokers                  |          | `HOST:PORT,..`; also as `kafka.bootstrap.servers`      |
    | zk                       |          | instead: ZooKeeper, `HOST:PORT[,..][/CHROOT]`          |
    | path (argument of load)  |          | instead: segment files, archives, directories, ..      |
    | subscribe                |          | topics, separated by commas                            |
    | subscribePattern         |          | instead: a regular expression for the whole name       |
    | assign                   |          | instead: `{"topic": ["0-0"]}`                          |
    | startingOffsets          | earliest | `earliest`, `latest`, `{"topic": {"0-0": 123}}` where  |
    |                          |          | -2 is earliest and -1 latest; streams: default latest  |
    | startingTimestamp        |          | ISO 8601 (UTC without a zone), or since 1970; to the   |
    |                          |          | precision of segments                                  |
    | startingOffsetsByTimestamp |        | `{"topic": {"0-0": MILLISECONDS}}`                     |
    | ending...                | latest   | the same three for the end of a batch                  |
    | failOnDataLoss           | true     | fail if requested messages are gone; else report it    |
    | crc                      | fail     | how to treat damaged messages: fail, mark, skip, off   |
    | maxBytesPerTrigger       |          | limit of a micro-batch; at least one message a range   |
    | maxBytesPerPartition     | 1g       | limit of a task                                        |
    | minPartitions            |          | minimum number of tasks, if there is data; a batch has |
    |                          |          | few more, by reading small ranges in one task. Without |
    |                          |          | it each partition has a task                           |
    | reportPath               |          | a directory for reports of omitted bytes, as JSON      |
    | decode                   |          | `auto`: values are JSON, decoded by the schema whose   |
    |                          |          | id they start with; brokers have the schemas           |
    | readerSchema             |          | with decode: id of the schema that values resolve to   |
    | fetchSize                | 1m       | bytes of a fetch request                               |
    | timeoutMs                | 30000    | limit of waiting for a response, and for the next      |
    |                          |          | leader; of a stream also for a broker that is down     |
    | connectTimeoutMs         | 5000     | limit of connecting                                    |
    | tls                      | false    | TLS with brokers; implied by its files                 |
    | tlsCa                    |          | PEM file of the brokers' CA, or its text               |
    | tlsCert, tlsKey          |          | the same of the client's certificate, and of its key;  |
    |                          |          | the driver reads files, executors get their contents   |
    | user, password           |          | logs in at brokers                                     |

Files of Apache Kafka (0.8 to 4) have offsets that count records, and numbers as partitions: an
assignment is `{"topic": [0]}`, offsets are `{"topic": {"0": 123}}`, times are those of records, and
`crc` is fail or skip.

Filters of a query are not pushed down: Spark keeps one plan for each table read with `load`, and
the filters of one reference to the table would apply to all. To read less, choose partitions with
`assign`, and offsets with `startingOffsets` and `endingOffsets`.

Options of a write, besides brokers, zk and the two timeouts:

    | option                   | default  | meaning                                                |
    | topic                    |          | the target; default: the column `topic` of each row    |
    | compression              | none     | none, gzip, snappy, lz4, zstd                          |
    | batchSize                | 256k     | bytes of payload in a message set                      |
    | retries                  |          | how often a message set is sent again at most; without |
    |                          |          | it, for two minutes                                    |
    | stagingPath              |          | a directory shared by all machines, where tasks keep   |
    |                          |          | message sets until the driver sends the committed ones |

Rows have a column value, and may have topic, key (its hash selects the partition) and partition
(`HOME-INDEX`). The other columns of a read are ignored.

    audit.py       the audit in Spark: counts of producers, and counts of messages in topics and in
                   loads
    compaction.py  compaction: replaces many small loads of an output by one with fewer, larger
                   files
    events.py      events in time: counts per key in windows, and joins with other events or with a
                   table
    extraction.py  text, key, time and number of events, extracted from payloads
    jobs.py        jobs: tasks with progress, and the `BrokerError` behind a failure of Spark
    load.py        loads: topics into files, each message once
    load_table.py  loads into tables of Iceberg and Delta: each message once, offsets and data in
                   one commit
    local.py       tasks on processes of this machine, without Spark
    options.py     options of the data source `pylog`: text of Spark to typed values, and back
    queries.py     SQL on topics: each topic a view, the payload as text or as columns of its JSON
    schema.py      the columns of the data source: the fields that the log format stores
    session.py     a Spark session for commands: finds Java, logs to a file, and ends with its block
    source.py      the data source `pylog`, and functions that return topics as DataFrames
    tables.py      tables of Iceberg and Delta as outputs, by Spark's own writers
    verify.py      validation of segment files on a cluster, with the report of `log verify`
    writer.py      the writer: rows to topics, batch and stream
"""
