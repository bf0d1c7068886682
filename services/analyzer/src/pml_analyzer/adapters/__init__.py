"""Adapters: the registry over the bus, and the processes that analyse, compile and check
programs."""
