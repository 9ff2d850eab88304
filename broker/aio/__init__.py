"""The client for asyncio: data in the event loop, the rest in threads; used as `pylogctl.aconnect`.

The machines are those of the client for threads; only what waits is written for the loop.
"""
