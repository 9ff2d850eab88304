"""The producer: messages to topics, synchronous and asynchronous."""
