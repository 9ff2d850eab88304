"""The wire protocol and message format, sans-IO: bytes in, values out.

Nothing here knows a socket, a file, a thread, a clock or a logger.
"""
