"""Connections of clients: sockets in, frames out, responses in order."""
