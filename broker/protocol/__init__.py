"""The wire protocol and message format, sans-IO: bytes in, values out.

Nothing here knows a socket, a file, a thread, a clock or a logger.

    _batches_python.py     the part of the codec engine in plain Python that is about Kafka's record
                           batches
    _codec_compiled.py     the codec engine in C, with the functions that `_codec_python` documents
    _codec_python.py       the codec engine in plain Python, which runs where the compiled one is
                           not built
    append_request.py      every request that appends message sets, in one form
    checksum.py            CRC-32 (IEEE) by independent routines
    client_connection.py   the client's side of a connection as a state machine: bytes and frames
                           in, requests out
    client_requests.py     the requests with which clients find, write and read partitions
    cluster_requests.py    requests of an operator about topics with replicas (field tables:
                           REQUESTS.md)
    codec.py               the codec: every loop over the messages or requests of a buffer is one of
                           these functions
    compression.py         compression codecs of wrapper messages, in 0.7's containers
    envelope.py            the envelope: when, where and as which message a producer made a
                           payload, in front of it
    extension_requests.py  our own requests by type and version, and those of an operator (field
                           tables: REQUESTS.md)
    fetch_sessions.py      fetch sessions: a reader names to a broker only what has changed since
                           its last fetch
    framing.py             frames: an int32 size and that many bytes, in both directions
    layouts.py             layouts: the wire form of a value, declared once for both ways
    message.py             the layout of an entry of a message set, and what both codec engines
                           share
    message_set.py         message sets: inspect, build, count, filter and slice them
    primitives.py          integers and short strings of the wire, read with bounds checks
    read_message.py        the messages that programs get: `Message`, in Python and as the compiled
                           codec makes it
    record_batch.py        Kafka's record batches (message format 2) and its older formats 0 and 1,
                           which are only read
    replica_requests.py    requests between the brokers of a cluster (field tables: REQUESTS.md)
    requests.py            0.7's five requests, byte for byte, and the types, header and partitions
                           all requests share
    responses.py           responses to 0.7's fetch, multifetch and offsets requests, and to ours
                           (REQUESTS.md)
"""
