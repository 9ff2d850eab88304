"""The client for asyncio: data in the event loop, the rest in threads; used as `pylogctl.aconnect`.

The machines are those of the client for threads; only what waits is written for the loop.

    access.py      what all parts of an asyncio client use: its loop and its threads
    calls.py       the orders of an asyncio client: those of `Client`, made in threads
    client.py      the client for asyncio: `Client` for the tasks of one event loop
    group.py       a member of a consumer group in an event loop
    loading.py     messages that a thread takes from brokers, chunk by chunk, and a task gives out
                   in the loop
    producer.py    a producer for asyncio: queues messages, sends them in the event loop, and gives
                   deliveries
    reader.py      reads topics in an event loop, from a start to a stop: messages, or batches of
                   them
    schemas.py     values with schemas in an event loop: schemas are looked up in threads
    send_loop.py   drives the engine of producers from an event loop: takes batches, sends them,
                   reads responses
    sending.py     how the engine of producers reaches brokers in an event loop, where nothing may
                   wait
"""
