"""Deno processes, the bus and their stand-ins, behind the ports."""
