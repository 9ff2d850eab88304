"""Connections of clients: sockets in, frames out, responses in order.

acceptor.py          the acceptor: one thread that accepts connections and distributes them over
                     the processors
broker_hosts.py      the IP addresses of registered brokers, whose connections have a reserve
connection.py        one client's connection: what it may do next, and its requests and
                     responses in between
connection_state.py  the states of a connection and the events that change them; knows no socket
connections.py       the open connections of a processor: the events it waits for, and when it
                     closes them
frame_receiver.py    frames from a socket: received bytes are cut, and the start of an
                     incomplete frame kept
handshakes.py        the TLS handshakes of a processor: how many are under way, and which
                     clients wait for a place
mailbox.py           calls that other threads leave to a thread that waits in a selector, and
                     its wake-up
principal_quotas.py  how much each principal uses of this broker, and how long its connections
                     are throttled for it
processor.py         a processor: one thread that owns connections, reads their requests and
                     writes the responses
quotas.py            limits that all connections share, and the log of why connections are
                     closed
response_queue.py    responses to a socket, in the order of their requests: bytes, and slices of
                     files by sendfile
socket_server.py     the threads that serve clients: the acceptor, the processors, and the
                     workers behind them
tls_transport.py     TLS on a client's socket: it receives and sends as the socket would, and
                     never waits
"""
