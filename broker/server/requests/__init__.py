"""Requests of clients and brokers, carried out."""
