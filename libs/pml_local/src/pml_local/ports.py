"""Free ports on loopback.

Ports are chosen below the kernel's range for outgoing connections: a restarted server finds its
port free, and a client that keeps reconnecting cannot connect to itself.
"""

import random
import socket

from pml_local.errors import PortTakenError, StackError

LOOPBACK = "127.0.0.1"
FIRST, LAST = 20_000, 32_000
BACKLOG = 4096
"""Connections queued while a server restarts; `net.core.somaxconn` may allow fewer."""


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A currently free port; another process may still take it first (`parts.start_on_free_port`
    then chooses another)."""
    for port in random.sample(range(FIRST, LAST), 200):
        if is_free(port):
            return port
    raise StackError(f"no free port on {LOOPBACK} between {FIRST} and {LAST}")


def require_port(port: int) -> int:
    """Return the port; raises PortTakenError when it is not free."""
    if not is_free(port):
        raise PortTakenError(port)
    return port


def listening(port: int) -> socket.socket:
    """A listening socket to hand to a server; raises PortTakenError."""
    # With the protocol set to TCP, asyncio disables Nagle's delay in the process that gets the
    # socket.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise PortTakenError(port) from None
    return listener


def port_or_free(preferred: int) -> int:
    """The preferred port, or a free one when it is taken."""
    return preferred if is_free(preferred) else free_port()
